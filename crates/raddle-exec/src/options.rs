//! The options of a run.

use std::path::PathBuf;

use raddle_client::ServerAddress;
use raddle_config::Override;
use raddle_protocol::{SandboxMode, ThreadId};

/// The options of a run, named as the flags of `raddle exec`, which describes them.
#[derive(Debug)]
pub struct Options {
    /// The thread to run in.
    pub thread: ThreadSelector,
    /// The task for the agent; `-` reads it from stdin.
    pub prompt: Option<String>,
    /// Configuration values; the last one of a key wins.
    pub config: Vec<Override>,
    /// Limits of the turn, each a configuration value.
    pub budget: Vec<Override>,
    /// The model, or `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// The sandbox mode.
    pub sandbox: Option<SandboxMode>,
    /// The working folder, if not the current one.
    pub cd: Option<PathBuf>,
    /// Whether a new thread works in a copy of its folder.
    pub is_copied: bool,
    /// Additional writable folders.
    pub add_dir: Vec<PathBuf>,
    /// Images for the model.
    pub image: Vec<PathBuf>,
    /// The file of a JSON Schema that the answer must match.
    pub output_schema: Option<PathBuf>,
    /// A file that also receives the answer.
    pub output_last_message: Option<PathBuf>,
    /// Print events as JSON lines; without a prompt, read it from stdin.
    pub json: bool,
    /// How requests of the agent are answered, if not by the default.
    pub unattended: Option<Unattended>,
    /// Keep the thread in memory only.
    pub ephemeral: bool,
    /// A running server; without one, the run starts its own.
    pub remote: Option<ServerAddress>,
    /// Print only the answer and errors.
    pub quiet: bool,
    /// Colours on stderr.
    pub color: Color,
    /// No sandbox and no approvals.
    pub dangerously_bypass_approvals_and_sandbox: bool,
    /// The sandbox mode `workspace-write`.
    pub full_auto: bool,
    /// The source recorded with a new thread.
    pub thread_source: Option<String>,
}

/// The thread to run in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThreadSelector {
    /// A new thread.
    New,
    /// The thread with this id.
    Old(ThreadId),
    /// The newest thread, of this folder or of any.
    Last {
        /// Whether threads of every folder are considered.
        of_any_folder: bool,
    },
}

/// How requests of the agent are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unattended {
    /// The user is asked on the terminal; the default if there is one.
    Ask,
    /// They are denied at once; the default without a terminal.
    Deny,
    /// By `unattended` of rules.toml.
    Rules,
}

/// When text on stderr has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set and not empty.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
