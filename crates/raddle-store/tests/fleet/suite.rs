//! The suite that every store passes.

use raddle_store::MemoryJournal;
use store_suite::StoreMaker;

use crate::maker::FleetMaker;

store_suite::tests!(mod fleet, FleetMaker);

/// Makes the reference: memory journals, whose handles share the records.
struct MemoryMaker(MemoryJournal);

impl StoreMaker for MemoryMaker {
    type Store = MemoryJournal;

    async fn fresh() -> Self {
        Self(MemoryJournal::new())
    }

    fn store(&self) -> &MemoryJournal {
        &self.0
    }

    async fn second_handle(&self) -> MemoryJournal {
        self.0.clone()
    }

    async fn reopen(self) -> Self {
        self
    }

    async fn settle(&self) {}
}

#[test]
fn the_fleet_journal_agrees_with_the_one_in_memory() {
    store_suite::model::agrees::<FleetMaker, MemoryMaker>(24);
}
