//! What every journal does, and what only the local one can get wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crash;
mod damage;
mod faulty;
mod files;
mod forks;
mod imports;
mod layout;
mod model;
mod node;
mod readonly;
mod records;
mod size;
mod suite;
