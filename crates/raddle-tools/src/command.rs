//! Commands: how a call asks for one, how it runs in the thread's fence, and what it leaves running.

mod fence;
mod listen;
mod notices;
mod programs;
mod run;
mod running;
mod spec;
mod typed;
pub(crate) mod users;
mod wish;

pub(crate) use self::fence::policy;
pub use self::fence::workspaces;
pub(crate) use self::notices::SentNotices;
pub(crate) use self::running::Terminals;
pub(crate) use self::spec::{exec_command, write_stdin};
pub(crate) use self::typed::{Typed, meant_typed, typed};
pub(crate) use self::wish::{Wish, is_fenced, meant, needs_path, wish};
