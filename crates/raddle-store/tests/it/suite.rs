//! The suite that every store passes.

use raddle_store::FaultyJournal;
use store_suite::StoreMaker;

use crate::makers::{LocalMaker, MemoryMaker};

store_suite::tests!(mod memory, MemoryMaker);
store_suite::tests!(mod faulty, FaultyMaker);
store_suite::tests!(mod local, LocalMaker);

/// The in-memory journal is the reference: it is the simplest.
#[test]
fn the_local_journal_agrees_with_the_one_in_memory() {
    store_suite::model::agrees::<LocalMaker, MemoryMaker>(48);
}

/// Makes faulty journals without a fault. As with memory journals, handles share the records.
struct FaultyMaker(FaultyJournal);

impl StoreMaker for FaultyMaker {
    type Store = FaultyJournal;

    async fn fresh() -> Self {
        Self(FaultyJournal::new())
    }

    fn store(&self) -> &FaultyJournal {
        &self.0
    }

    async fn second_handle(&self) -> FaultyJournal {
        self.0.clone()
    }

    async fn reopen(self) -> Self {
        self
    }

    async fn settle(&self) {}
}
