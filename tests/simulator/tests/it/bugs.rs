//! Planted bugs are caught, and the failing scenario can be shrunk.

use raddle_core::Bug;
use simulator::scenario::{FLEET_SEEDS, Medium, Scenario};
use simulator::{play, shrink};

/// Number of seeds, a third of them of a fleet, within which a bug of the fleet's journal is caught.
const FLEET_BUG_SEEDS: u64 = 3_000;

/// Returns the first of some seeds that catches a bug, and the promise that it breaks.
fn caught(bug: Bug, seeds: u64) -> Option<(u64, &'static str)> {
    raddle_core::plant(Some(bug));
    let from = if bug.is_of_fleet() { FLEET_SEEDS } else { 0 };
    let caught = (from..from + seeds).find_map(|seed| {
        let scenario = Scenario::of(seed);
        if bug.is_of_fleet() && scenario.medium != Medium::Fleet {
            return None;
        }
        let broken = play(&scenario, false).broken?;
        Some((seed, broken.promise))
    });
    raddle_core::plant(None);
    caught
}

#[test]
fn every_planted_bug_is_caught_within_a_few_seeds() {
    for bug in Bug::ALL {
        let seeds = if bug.is_of_fleet() {
            FLEET_BUG_SEEDS
        } else {
            400
        };
        assert!(caught(bug, seeds).is_some(), "{bug:?}");
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
