//! Tests of the real binary, started as a process and used from outside.
//!
//! The system chooses the ports, every server has its own home, and every wait has a deadline, so
//! the tests can run concurrently.

/// The command line: help, mistakes, and the commands that need no server.
mod cli;
/// `raddle-client`, the client in Rust, on every transport.
mod client;
/// Commands of clients: they leave no processes, see no secrets, and cost little.
mod commands;
/// `raddle daemon`: start, stop and status.
mod daemon;
/// `raddle exec`: input, output, exit status and recovery.
mod exec;
/// A server whose threads are in PostgreSQL.
#[cfg(feature = "fleet")]
mod fleet;
/// Homes of older versions, opened and continued.
mod homes;
/// Thousands of malformed frames, on every transport.
mod hostile;
/// `raddle judge`, on homes with rules.
mod judge;
/// Start, draining and end of a server, and clients that must not block it.
mod lifecycle;
/// Access control: `Origin`, `Host`, tokens, addresses, the Unix socket.
mod listeners;
/// `raddle mcp-server`, with an MCP client.
mod mcp_server;
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
/// Wrong inputs on the command line and in the configuration, and their errors.
mod wrong_inputs;

/// Deadlines, with the server inside the test process, where they can be short.
mod deadlines;

/// Classifies frames by the rules of `docs/frames.md`, without the server's code.
mod reference;
/// A model that follows a script.
#[path = "../../../raddle-server/tests/it/script.rs"]
mod script;
/// A server as a process, and clients for it.
mod support;
/// Programs that resist termination.
#[path = "../../../raddle-sandbox/tests/it/unruly.rs"]
mod unruly;

// Records as an owner would write them.
use store_suite::records;
