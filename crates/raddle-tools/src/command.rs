//! Commands: parsing a call, running it in the thread's sandbox, and keeping it in the background.

mod confinement;
mod notices;
mod output_listener;
mod programs;
mod read_only;
mod request;
mod run;
mod spec;
mod stdin_write;
mod terminals;
pub(crate) mod user_commands;

pub(crate) use self::confinement::policy;
pub use self::confinement::workspaces;
pub(crate) use self::notices::SentNotices;
pub(crate) use self::read_only::read_only_output;
pub(crate) use self::request::{
    CommandRequest, command_intent, is_confined, needs_path, parse_request,
};
pub(crate) use self::spec::{exec_command, write_stdin};
pub(crate) use self::stdin_write::{StdinWrite, parse_write, write_intent};
pub(crate) use self::terminals::Terminals;
