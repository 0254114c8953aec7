//! Planted bugs are caught, and the failing scenario can be shrunk.

use raddle_core::Bug;
use simulator::scenario::Scenario;
use simulator::{play, shrink};

/// Returns the first of some seeds that catches a bug, and the promise that it breaks.
fn caught(bug: Bug, seeds: u64) -> Option<(u64, &'static str)> {
    raddle_core::plant(Some(bug));
    let broken = |seed| play(&Scenario::of(seed), false).broken;
    let caught = (0..seeds).find_map(|seed| broken(seed).map(|broken| (seed, broken.promise)));
    raddle_core::plant(None);
    caught
}

#[test]
fn every_planted_bug_is_caught_within_a_few_hundred_seeds() {
    for bug in Bug::ALL {
        assert!(caught(bug, 400).is_some(), "{bug:?}");
    }
}

#[test]
fn a_failure_is_made_smaller_and_stays_a_failure() {
    let (seed, promise) = caught(Bug::UnendedTurn, 400).expect("it is caught");
    raddle_core::plant(Some(Bug::UnendedTurn));
    let whole = Scenario::of(seed);
    let smallest = shrink(&whole, promise);
    let broken = play(&smallest, false).broken;
    raddle_core::plant(None);
    assert_eq!(broken.map(|broken| broken.promise), Some(promise));
    assert!(smallest.faults.len() <= whole.faults.len());
    assert!(smallest.smaller().len() < whole.smaller().len());
}
