//! The real binary, started as a process and spoken to from outside.
//!
//! Ports are chosen by the system, every server has a home of its own, and every wait has a
//! deadline, so the tests may run beside each other.

/// What people type: help, mistakes, and the commands that need no server.
mod cli;
/// `raddle-client`, the client in Rust, on every transport.
mod client;
/// What clients run: nothing of it stays, it sees no secrets, and it costs little.
mod commands;
/// `raddle daemon`: how it starts and ends, and what is said of it.
mod daemon;
/// `raddle exec`: what it reads and prints, how it ends, and what it survives.
mod exec;
/// Thousands of frames that are no good, on every transport.
mod hostile;
/// `raddle judge`, on homes with rules.
mod judge;
/// How a server starts, drains and ends, and who may not keep it from serving.
mod lifecycle;
/// Who is let in, and who is not: `Origin`, `Host`, tokens, addresses, the unix socket.
mod listeners;
/// Turns against `raddle mock`.
mod model;
/// More requests than may run at once.
mod overload;
/// `raddle sandbox` and `raddle doctor`, with the bubblewrap of the machine and with others.
mod sandbox;
/// `raddle thread`, on homes with and without a server.
mod thread;

/// Processes of several versions on one home.
mod versions;

/// Deadlines, with the server inside the test, where they can be short.
mod deadlines;

/// Records as an owner would write them.
#[expect(dead_code, reason = "the journal's own tests use the rest")]
#[path = "../../../raddle-store/tests/it/records.rs"]
mod records;
/// What a frame is, by the rules of `docs/frames.md` and without the server's code.
mod reference;
/// A model that follows a script.
#[path = "../../../raddle-server/tests/it/script.rs"]
mod script;
/// A server as a process, and ways to talk to it.
mod support;
/// Programs that do all they can to stay.
#[path = "../../../raddle-sandbox/tests/it/unruly.rs"]
mod unruly;
