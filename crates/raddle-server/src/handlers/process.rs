//! `process/*`: processes that the client runs without a sandbox.

pub(crate) mod kill;
pub(crate) mod resize_pty;
pub(crate) mod spawn;
pub(crate) mod write_stdin;
