//! The wires against the scripted vendor, and against bytes by hand.

/// Connections: kept, stale, dropped.
mod connections;
/// What the mock's page says.
mod docs;
/// What comes of a call that goes wrong.
mod faults;
/// Answers as real servers sent them.
mod recorded;
/// What is sent.
mod requests;
/// What the scripted vendor plays.
mod scripts;
/// Answers of each wire, as bytes.
mod streams;
/// How long a call is waited for.
mod timeouts;
/// Answers as other vendors may write them.
mod tolerance;
/// What is the same on every wire.
mod wires;

mod support;
