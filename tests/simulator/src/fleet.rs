//! A model of the fleet's journal: a database, and on each node the code that writes to it.
//!
//! The journal itself needs a server, so it cannot run in virtual time. The model has its statements
//! and their conditions (docs/fleet.md, decisions 18 and 19), and functions with the names and the
//! order of steps of `raddle-store`. It leaves out what decides nothing about order and loss: lanes,
//! the deletion of batches, sizes, and locks that wait.

mod append;
mod database;
mod journal;
mod sender;
mod take;
mod tasks;

pub use database::{
    AppendStatement, Batch, Commit, Database, DeltaRow, LogId, Response, Statement,
};
pub use journal::{NodeJournal, appends, prepares_read, reads_head, sends_batches, takes};
pub use tasks::{QueryFailure, Sent, Task, TaskResult};
