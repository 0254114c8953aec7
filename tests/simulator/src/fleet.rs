//! A model of the fleet's journal: a database, and on each node the code that writes to it.
//!
//! The journal itself needs a server, so it cannot run in virtual time. The model has its statements
//! and their conditions (docs/fleet.md, decisions 18 and 19), and functions with the names and the
//! order of steps of `raddle-store`. It leaves out what decides nothing about order and loss: lanes,
//! the deletion of batches, sizes, and locks that wait.
//!
//! In the model only batches and snapshots commit without waiting for the standby. Every append to the
//! rows of a thread waits, whatever the class of its records: a node lives on when the primary is lost,
//! and its log would go on after a head that fell back.

mod append;
mod database;
mod journal;
mod sender;
mod statement;
mod take;
mod tasks;

pub use database::Database;
pub use journal::{NodeJournal, appends, prepares_read, reads_head, sends_batches, takes};
pub use statement::{AppendStatement, Commit, DeltaRow, LogId, NodeLogBatch, Response, Statement};
pub use tasks::{QueryFailure, Sent, Task, TaskResult};
