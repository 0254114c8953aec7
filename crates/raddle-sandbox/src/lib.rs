//! Processes of others: the fence around them, and that nothing of them is left behind.
//!
//! A [`Launch`] says what to start. A [`Fence`] says how it is started so that it can do no more than a
//! [`Policy`] allows, and refuses what it cannot enforce; how strong it is on this machine is measured, never
//! assumed: see [`measure`]. The [`Engine`] starts it under a keeper, a small process of our own that ends
//! every descendant of the command when the command is over, when it is told to, and when the server is
//! gone, however it died. [`egress`] is the one way out of a fence that has any.
//!
//! None of it knows what a tool, a thread or a model is. The only crate of the product with `unsafe`, for
//! system calls that no safe crate has.
//!
//! Below: the kernel, and bubblewrap where it is installed. Above: whoever runs a program for a client or a
//! model.

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
    Tier, git_config, gitfile_path, home, ignore_interrupts, is_around_home, is_git_dir, measure,
    obeyed_paths, take_over,
};
pub use descriptors::set_cloexec;
pub use holds::{FileHold, FileHolds, HoldConflict, HoldError, WriteClaim};
pub use launch::Launch;
pub use policy::{
    Network, PROTECTED, Policy, ReadScope, SandboxRules, Scratch, Tmp, scratch_folders,
};
pub use process::{
    ChildProcess, Control, Exit, ExitReport, ExitStatus, Input, InputFull, KEEP, KeeperCommand,
    Launcher, Output, PendingStart, StartError, Stdio, TerminalSize, keep,
};
pub use programs::{
    NamedProgram, ProgramError, USUAL_PATH, find_bubblewrap, is_owned_by_root, is_program,
    named_program,
};
pub use rights::LoweredRights;
pub use search_path::{LoginPath, SearchPath, login_path, own_path, without_writable};
pub use service::{
    ConfinedProcess, Confinement, ConfinementError, LaunchPlan, MeasureFn, SandboxService,
};
pub use written_folders::WrittenFolders;
