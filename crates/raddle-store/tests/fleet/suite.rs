//! The suite that every store passes.

use crate::maker::FleetMaker;
use crate::makers::MemoryMaker;

store_suite::tests!(mod fleet, FleetMaker);

/// Variable with the number of cases of the model; a proof sets it.
const CASES: &str = "RADDLE_TEST_CASES";

#[test]
fn the_fleet_journal_agrees_with_the_one_in_memory() {
    let cases = std::env::var(CASES).ok().and_then(|it| it.parse().ok());
    store_suite::model::agrees::<FleetMaker, MemoryMaker>(cases.unwrap_or(24));
}
