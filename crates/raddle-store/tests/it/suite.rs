//! The suite that every store passes.

use crate::makers::{FaultyMaker, LocalMaker, MemoryMaker};

store_suite::tests!(mod memory, MemoryMaker);
store_suite::tests!(mod faulty, FaultyMaker);
store_suite::tests!(mod local, LocalMaker);

/// The in-memory journal is the reference: it is the simplest.
#[test]
fn the_local_journal_agrees_with_the_one_in_memory() {
    store_suite::model::agrees::<LocalMaker, MemoryMaker>(48);
}
