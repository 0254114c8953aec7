//! Playing a scenario, and making one that fails small.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::check::{BrokenPromise, Check, broken};
use crate::coverage::Coverage;
use crate::rng::Hash;
use crate::scenario::{PlannedFault, Scenario};
use crate::world::SimWorld;

/// What came of a run.
pub struct RunOutcome {
    /// The promise that was broken, if one was.
    pub broken: Option<BrokenPromise>,
    /// A hash of everything that happened.
    pub trace: Hash,
    /// What was reached.
    pub reach: Coverage,
    /// For how long it ran, in virtual milliseconds.
    pub ms: u64,
    /// What happened, in words, if that was asked for.
    pub lines: Vec<String>,
}

/// Plays a scenario to its end, or to the first broken promise.
pub fn play(scenario: &Scenario, keeps_lines: bool) -> RunOutcome {
    raddle_core::small_bounds(true);
    let mut world = SimWorld::new(scenario, keeps_lines);
    let result = catch_unwind(AssertUnwindSafe(|| world.run()));
    let broken = match result {
        Ok(check) => check.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let how = text.unwrap_or_else(|| "without a word".to_owned());
            Some(BrokenPromise {
                promise: "no panic",
                how,
            })
        }
    };
    RunOutcome {
        broken,
        trace: world.trace,
        reach: world.reach,
        ms: world.now,
        lines: world.lines.unwrap_or_default(),
    }
}

/// I9: a thread's log is the same whether or not another thread is there.
pub fn isolated(scenario: &Scenario) -> Check {
    let power = |fault: &(u64, PlannedFault)| matches!(fault.1, PlannedFault::PowerCut { .. });
    // A power cut is survived by what another thread happened to sync, so those are left out.
    if scenario.threads < 2 || scenario.forks || scenario.faults.iter().any(power) {
        return Ok(());
    }
    raddle_core::small_bounds(true);
    let logs: Vec<Vec<String>> = [scenario.threads, 1]
        .into_iter()
        .map(|threads| {
            let scenario = Scenario {
                threads,
                ..scenario.clone()
            };
            let mut world = SimWorld::new(&scenario, false);
            world.run().ok();
            world
                .store
                .log(0)
                .rows
                .iter()
                .map(|row| row.json.clone())
                .collect()
        })
        .collect();
    let common = logs[0].len().min(logs[1].len());
    // One of the two runs may be watched a little longer.
    if logs[0][..common] != logs[1][..common] {
        return broken("I9 isolation", "a thread's log depends on another thread");
    }
    Ok(())
}

/// The smallest scenario found that breaks the same promise.
pub fn shrink(scenario: &Scenario, promise: &str) -> Scenario {
    let mut smallest = scenario.clone();
    let mut tries = 0;
    'again: loop {
        for smaller in smallest.smaller() {
            tries += 1;
            if tries > 300 {
                return smallest;
            }
            let still = play(&smaller, false)
                .broken
                .is_some_and(|it| it.promise == promise);
            if still {
                smallest = smaller;
                continue 'again;
            }
        }
        return smallest;
    }
}
