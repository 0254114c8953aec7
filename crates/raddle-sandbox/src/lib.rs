//! Processes of others: how they are started, and that nothing of them is left behind.
//!
//! A [`Launch`] says what to start. The [`Engine`] starts it under a keeper, a small process of our own
//! that ends every descendant of the command when the command is over, when it is told to, and when the
//! server is gone, however it died.
//!
//! Below: the system. Above: whoever runs a program for a client or a model.

pub mod egress;
pub mod environment;
mod launch;
mod process;

pub use launch::Launch;
pub use process::{
    Ended, Engine, Full, Input, KEEP, Keeper, Leash, Life, Output, Over, Process, Size, StartError,
    Stdio, keep,
};
