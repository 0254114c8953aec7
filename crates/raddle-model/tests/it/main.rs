//! The wires against the scripted vendor, and against handwritten bytes.

/// Connections: idle, stale, dropped.
mod connections;
/// The page of the mock.
mod docs;
/// Errors of failed calls.
mod faults;
/// Recorded answers of real servers.
mod recorded;
/// Requests as they are sent.
mod requests;
/// Answers of the scripted vendor.
mod scripts;
/// Answers of each wire, as bytes.
mod streams;
/// Timeouts of a call.
mod timeouts;
/// Answers in the spelling of other vendors.
mod tolerance;
/// Behaviour that all wires share.
mod wires;

mod support;
