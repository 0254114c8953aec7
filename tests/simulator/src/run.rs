//! Running a scenario, and shrinking one that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::check::{BrokenPromise, Check, broken};
use crate::coverage::Coverage;
use crate::hash::Hash;
use crate::scenario::{Medium, PlannedFault, Scenario};
use crate::world::SimWorld;

/// Result of a run.
pub struct RunOutcome {
    /// Promise that was broken, if any.
    pub broken: Option<BrokenPromise>,
    /// Hash of everything that happened.
    pub trace: Hash,
    /// Situations that were reached.
    pub coverage: Coverage,
    /// Length of the run, in virtual milliseconds.
    pub ms: u64,
    /// Trace of the run, if it was requested.
    pub lines: Vec<String>,
}

/// Runs a scenario to its end, or to the first broken promise.
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
        coverage: world.coverage,
        ms: world.now,
        lines: world.lines.unwrap_or_default(),
    }
}

/// I9: a thread's log is the same whether or not another thread is there.
pub fn isolated(scenario: &Scenario) -> Check {
    let power = |fault: &(u64, PlannedFault)| matches!(fault.1, PlannedFault::PowerCut { .. });
    // After a power cut, records may survive because another thread was synced, so those runs are
    // left out.
    // A node log is one for all threads of its node.
    let is_fleet = scenario.medium == Medium::Fleet;
    if scenario.threads < 2 || scenario.forks || is_fleet || scenario.faults.iter().any(power) {
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
    // One of the two runs may last a little longer.
    if logs[0][..common] != logs[1][..common] {
        return broken("I9 isolation", "a thread's log depends on another thread");
    }
    Ok(())
}

/// Returns the smallest scenario found that breaks the same promise.
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
