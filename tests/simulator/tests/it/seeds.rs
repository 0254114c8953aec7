//! The file of seeds: each still shows what it was kept for.

use raddle_core::Bug;
use simulator::coverage::{RARE, REQUIRED};
use simulator::play;
use simulator::scenario::Scenario;

/// Purpose of a stored seed.
enum SeedPurpose {
    /// Reaches this situation, and keeps every promise.
    Reach(&'static str),
    /// Catches this bug when it is planted, and keeps every promise when it is not.
    Bug(Bug),
}

fn seed_purpose(what: &str) -> Option<SeedPurpose> {
    let (kind, name) = what.split_once(' ')?;
    match kind {
        "reach" => REQUIRED
            .iter()
            .chain(RARE)
            .find(|it| **it == name)
            .map(|it| SeedPurpose::Reach(it)),
        "bug" => Bug::ALL
            .into_iter()
            .find(|bug| format!("{bug:?}") == name)
            .map(SeedPurpose::Bug),
        _ => None,
    }
}

/// Parses the lines of the file: a seed, its purpose, and why it was kept.
fn stored_seeds() -> Vec<(u64, SeedPurpose)> {
    let lines = include_str!("../../seeds.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut columns = line.split('|').map(str::trim);
            let seed = columns.next().and_then(|seed| seed.parse().ok());
            let purpose = columns.next().and_then(seed_purpose);
            match (seed, purpose, columns.next()) {
                (Some(seed), Some(purpose), Some(_)) => (seed, purpose),
                _ => panic!("not `SEED | reach COUNTER or bug NAME | WHY`: {line}"),
            }
        })
        .collect()
}

#[test]
fn every_seed_keeps_every_promise_and_reaches_what_it_was_kept_for() {
    for (seed, purpose) in stored_seeds() {
        let outcome = play(&Scenario::of(seed), false);
        if let Some(broken) = outcome.broken {
            panic!("seed {seed}: {}: {}", broken.promise, broken.how);
        }
        if let SeedPurpose::Reach(what) = purpose {
            let reached = outcome.coverage.0.contains_key(what);
            assert!(reached, "seed {seed} no longer reaches: {what}");
        }
    }
}

#[test]
fn every_planted_bug_has_a_seed_that_catches_it() {
    let bugs = stored_seeds()
        .into_iter()
        .filter_map(|(seed, purpose)| match purpose {
            SeedPurpose::Bug(bug) => Some((seed, bug)),
            SeedPurpose::Reach(_) => None,
        });
    let bugs: Vec<(u64, Bug)> = bugs.collect();
    for bug in Bug::ALL {
        let seeds: Vec<u64> = bugs
            .iter()
            .filter(|(_, caught)| *caught == bug)
            .map(|(seed, _)| *seed)
            .collect();
        assert!(!seeds.is_empty(), "no seed is kept for {bug:?}");
        raddle_core::plant(Some(bug));
        let missed = seeds
            .into_iter()
            .find(|seed| play(&Scenario::of(*seed), false).broken.is_none());
        raddle_core::plant(None);
        assert_eq!(missed, None, "a seed no longer catches {bug:?}");
    }
}
