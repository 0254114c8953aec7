//! Runs programs in a sandbox, and leaves no process of them behind.
//!
//! A [`Launch`] names the program to start. A [`SandboxHost`] wraps it so that it can do no more
//! than a [`Policy`] allows, and refuses rules that it cannot enforce. Its strength on this machine
//! is measured, never assumed: see [`measure`]. The [`Launcher`] starts the program under a keeper,
//! a small process of our own. The keeper ends every descendant of the command when the command has
//! ended, when the server asks for it, and when the server dies in any way. [`egress`] is the only
//! network access of a sandbox that has any.
//!
//! The crate does not know tools, threads or models. Its `unsafe` code makes system calls that no
//! safe crate has.
//!
//! Below: the kernel, and bubblewrap where it is installed. Above: the crates that run programs for
//! a client or a model.

mod confinement;
mod descriptors;
pub mod egress;
pub mod environment;
mod holds;
mod launch;
mod policy;
mod process;
mod programs;
mod rights;
mod search_path;
mod service;
mod written_folders;

pub use confinement::attempt;
pub use confinement::{
    ConfinedLaunch, Finding, Measurement, Notice, Options, PolicyPath, SandboxHost, SandboxRefusal,
    Tier, git_config, git_control_paths, gitfile_path, home, ignore_interrupts, is_around_home,
    is_git_dir, measure, take_over,
};
pub use descriptors::set_cloexec;
pub use holds::{FileHold, FileHolds, HoldConflict, HoldError, WriteClaim};
pub use launch::Launch;
pub use policy::{
    Network, PROTECTED, Policy, ReadScope, SandboxRules, Scratch, Tmp, scratch_folders,
};
pub use process::{
    ChildProcess, Control, Exit, ExitReport, ExitStatus, Input, InputFull, KEEP, KeeperCommand,
    Launcher, Output, OutputError, PendingStart, StartError, Stdio, TerminalSize, keep,
};
pub use programs::{
    NamedProgram, ProgramError, USUAL_PATH, find_bubblewrap, is_owned_by_root, is_program,
    is_replaceable, named_program,
};
pub use rights::LoweredRights;
pub use search_path::{
    LoginPath, LoginPathError, SearchPath, login_path, own_path, without_writable,
};
pub use service::{
    ConfinedProcess, Confinement, ConfinementError, LaunchPlan, MeasureFn, SandboxService,
};
pub use written_folders::WrittenFolders;
