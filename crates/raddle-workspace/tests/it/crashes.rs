//! A restore whose process is killed before each system call that changes the disk, and one whose
//! calls fail.
//!
//! The faults of `restores.rs` are at the steps that the code names. Here they are at the calls of
//! the kernel: strace lists those of one restore, and then kills the process, or lets a call fail,
//! at each of them. After each run the workspace is opened anew. Then every file, folder and link
//! must be that of the state before or of the one after, the user's files must be the same inodes,
//! nothing temporary may be left, and restores to both states must work.
//!
//! A slice runs with every test run, if strace is installed. `RADDLE_RESTORE_CRASH=full` runs all
//! calls, and fails without strace.

mod scene;
mod strace;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::path::PathBuf;
use std::process;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use raddle_workspace::{Error, NoFaults};

use scene::{Scene, Side, SnapshotNames, States};
use strace::{ChildExit, ChildWork, Inject, TracedCall, code};

/// Number of processes at a time.
const WORKERS: usize = 2;

/// In a slice, one of this many calls is tried.
const SLICE: usize = 12;

/// At full size, the recovery is killed at each of its calls after one of this many kills.
const RECOVERED: usize = 5;

/// Kind of the faults of some runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FaultKind {
    Kill,
    KillWithoutExchange,
    /// One call fails, and later ones succeed.
    FailsOnce(&'static str),
    /// All later calls that need space fail too.
    StaysFull,
    /// All later calls fail that may change the disk.
    StaysBroken,
    /// The recovery of a killed restore is killed.
    KillRecovery,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill => f.write_str("killed before a call that changes the disk"),
            Self::KillWithoutExchange => f.write_str("killed, where files cannot be exchanged"),
            Self::FailsOnce(error) => write!(f, "a call fails with {error}"),
            Self::StaysFull => f.write_str("the disk stays full from a call on"),
            Self::StaysBroken => f.write_str("the disk fails from a call on"),
            Self::KillRecovery => f.write_str("killed, and killed while it recovers"),
        }
    }
}

/// A process, or two one after the other, and their faults.
#[derive(Clone, Debug)]
struct FaultRun {
    kind: FaultKind,
    call: TracedCall,
    faults: Vec<(ChildWork, Inject)>,
}

/// Number of runs of a kind and of their results.
#[derive(Clone, Copy, Default)]
struct KindCounts {
    runs: usize,
    kills: usize,
    errors: usize,
    old: usize,
    new: usize,
    violations: usize,
    /// Runs in which the fault did not happen, because the calls of the process were others.
    missed: usize,
}

#[derive(Default)]
struct Report {
    counts: BTreeMap<FaultKind, KindCounts>,
    violations: Vec<String>,
}

/// The process that restores or recovers. The driver starts it, under strace.
#[test]
#[ignore = "another test starts it"]
fn child() {
    let Ok(work) = env::var("RADDLE_CRASH_WORK") else {
        return;
    };
    let path = |name: &str| PathBuf::from(env::var_os(name).expect("a path"));
    let name = |name: &str| env::var(name).expect("a name");
    let (folder, store) = (path("RADDLE_CRASH_FOLDER"), path("RADDLE_CRASH_STORE"));
    let names = SnapshotNames {
        checkpoint: name("RADDLE_CRASH_CHECKPOINT"),
        agent: name("RADDLE_CRASH_AGENT"),
    };
    strace::begin();
    let result = if work == ChildWork::Recover.name() {
        let opened = scene::open(&folder, &store);
        opened.and_then(|mut it| it.recover(&NoFaults).map(|_| code::RESTORED))
    } else {
        let opened = scene::open(&folder, &store);
        let restored = opened.and_then(|mut it| scene::restore(&mut it, &names, Side::New));
        restored.map(|it| it.map_or(code::REFUSED, |_| code::RESTORED))
    };
    process::exit(match result {
        Ok(code) => code,
        Err(Error::NotRestored(_) | Error::Changed(_)) => code::NOT_RESTORED,
        Err(_) => code::FAILED,
    });
}

#[test]
fn restore_with_a_fault_at_any_call_leaves_one_state() {
    let is_full = env::var("RADDLE_RESTORE_CRASH").is_ok_and(|it| it == "full");
    if !strace::is_available() {
        assert!(!is_full, "strace is not installed, or may not trace");
        eprintln!("skipped: strace is not installed, or may not trace");
        return;
    }
    let start = Instant::now();
    let states = States::new();
    let (_, names) = Scene::new();
    let runs = plan_runs(&states, &names, is_full);
    let report = run_all(&runs, &states, &names);
    let seconds = start.elapsed().as_secs();
    print(&report, seconds);
    let missed: usize = report.counts.values().map(|it| it.missed).sum();
    assert_eq!(missed, 0, "faults that did not happen");
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    let kills = report
        .counts
        .get(&FaultKind::Kill)
        .copied()
        .unwrap_or_default();
    assert!(kills.old > 0 && kills.new > 0, "both states were seen");
}

/// Lists the runs, from the calls of processes without faults.
fn plan_runs(states: &States, names: &SnapshotNames, is_full: bool) -> Vec<FaultRun> {
    let calls = traced(states, names, Inject::nothing());
    let changing: Vec<&TracedCall> = calls.iter().filter(|it| it.is_changing).collect();
    eprintln!(
        "figure: calls of one restore: {}, of which change the disk: {}",
        calls.len(),
        changing.len()
    );
    let mut runs = Vec::new();
    let mut add = |kind, call: &TracedCall, inject| {
        let faults = vec![(ChildWork::Restore, inject)];
        let call = call.clone();
        runs.push(FaultRun { kind, call, faults });
    };
    for (place, call) in calls.iter().enumerate().filter(|(_, it)| it.is_changing) {
        add(FaultKind::Kill, call, Inject::kill(call));
        add(
            FaultKind::FailsOnce("ENOSPC"),
            call,
            Inject::fail(call, "ENOSPC"),
        );
        // After the last call that needs space, nothing meets the full disk.
        if calls[place..].iter().any(TracedCall::needs_space) {
            add(FaultKind::StaysFull, call, Inject::full_from(call));
        }
        add(FaultKind::StaysBroken, call, Inject::broken_from(call));
    }
    for call in &calls {
        add(FaultKind::FailsOnce("EIO"), call, Inject::fail(call, "EIO"));
    }
    for call in &traced(states, names, Inject::nothing().without_exchange()) {
        // The call that fails changes nothing.
        if call.is_changing && call.name != "renameat2" {
            let inject = Inject::kill(call).without_exchange();
            add(FaultKind::KillWithoutExchange, call, inject);
        }
    }
    if !is_full {
        // A stable sort, so that the runs of each kind are spread over the calls.
        runs.sort_by_key(|it| it.kind);
        return runs.into_iter().step_by(SLICE).collect();
    }
    for call in changing.iter().step_by(RECOVERED) {
        let (scene, _) = Scene::new();
        strace::run(&scene, names, ChildWork::Restore, &Inject::kill(call));
        let recovered = strace::run(&scene, names, ChildWork::Recover, &Inject::nothing());
        for inner in strace::calls(&recovered.log)
            .iter()
            .filter(|it| it.is_changing)
        {
            runs.push(FaultRun {
                kind: FaultKind::KillRecovery,
                call: inner.clone(),
                faults: vec![
                    (ChildWork::Restore, Inject::kill(call)),
                    (ChildWork::Recover, Inject::kill(inner)),
                ],
            });
        }
    }
    runs
}

/// Returns the calls of a restore without faults, after a check of its result.
fn traced(states: &States, names: &SnapshotNames, inject: Inject) -> Vec<TracedCall> {
    let (scene, _) = Scene::new();
    let run = strace::run(&scene, names, ChildWork::Restore, &inject);
    assert_eq!(run.exit, ChildExit::Restored, "{}", run.stderr);
    assert_eq!(scene.side(states), Ok(Side::New));
    assert_eq!(scene.check(states, names), Ok(Side::New));
    strace::calls(&run.log)
}

fn run_all(runs: &[FaultRun], states: &States, names: &SnapshotNames) -> Report {
    let next = AtomicUsize::new(0);
    let report = Mutex::new(Report::default());
    let work = || {
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (counts, violation) = run.check(states, names);
            let mut report = report.lock().expect("no panic");
            report.counts.entry(run.kind).or_default().add(counts);
            if let Some(violation) = violation {
                let call: String = run.call.line.chars().take(100).collect();
                let text = format!("{}: at {call}: {violation}", run.kind);
                eprintln!("VIOLATION: {text}");
                report.violations.push(text);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    report.into_inner().expect("no panic")
}

fn print(report: &Report, seconds: u64) {
    let mut sum = KindCounts::default();
    for (kind, counts) in &report.counts {
        eprintln!("figure: {kind}: {counts}");
        sum.add(*counts);
    }
    eprintln!("figure: in all: {sum}; {seconds} s");
}

impl FaultRun {
    /// Runs the processes, and checks what they left.
    fn check(&self, states: &States, names: &SnapshotNames) -> (KindCounts, Option<String>) {
        let (scene, _) = Scene::new();
        let mut counts = KindCounts {
            runs: 1,
            ..KindCounts::default()
        };
        let mut violation = None;
        for (work, inject) in &self.faults {
            let run = strace::run(&scene, names, *work, inject);
            counts.missed += usize::from(!run.was_hit());
            counts.kills += usize::from(run.exit == ChildExit::Killed);
            let is_error = matches!(
                run.exit,
                ChildExit::NotRestored | ChildExit::Failed | ChildExit::Refused
            );
            counts.errors += usize::from(is_error);
            // The result names the state, and nothing remains to be done.
            let reported = match &run.exit {
                // A recovery may lead to either state.
                ChildExit::Restored if *work == ChildWork::Recover => None,
                ChildExit::Restored => Some(Side::New),
                ChildExit::NotRestored | ChildExit::Refused => Some(Side::Old),
                ChildExit::Killed | ChildExit::Failed => None,
                ChildExit::Other(it) => {
                    violation = Some(format!("it ended with {it}: {}", run.stderr));
                    None
                }
            };
            if let Some(reported) = reported {
                match scene.side(states) {
                    Ok(side) if side == reported => {}
                    Ok(side) => violation = Some(format!("{side:?} after {:?}", run.exit)),
                    Err(error) => violation = Some(format!("after {:?}: {error}", run.exit)),
                }
            }
        }
        match scene.check(states, names) {
            Ok(Side::Old) => counts.old = 1,
            Ok(Side::New) => counts.new = 1,
            Err(error) => violation = violation.or(Some(error)),
        }
        counts.violations = usize::from(violation.is_some());
        (counts, violation)
    }
}

impl KindCounts {
    fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.kills += other.kills;
        self.errors += other.errors;
        self.old += other.old;
        self.new += other.new;
        self.violations += other.violations;
        self.missed += other.missed;
    }
}

impl fmt::Display for KindCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runs,
            kills,
            errors,
            old,
            new,
            violations,
            missed: _,
        } = self;
        write!(
            f,
            "runs {runs}, kills {kills}, errors {errors}, old {old}, new {new}, violations {violations}"
        )
    }
}
