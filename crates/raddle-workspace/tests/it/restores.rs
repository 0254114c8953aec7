//! Plans, conflicts, the death of the process at every step, and disks that fail.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use raddle_workspace::{
    Error, Faults, NoFaults, RestoreOutcome, RestorePlan, RestoreRequest, Snapshot, Workspace,
    WorkspacePath,
};

use crate::fixture::{Fixture, FolderState, changed_paths, path, paths, snapshot};

/// Kind of the fault at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    /// The process dies.
    Death,
    /// One change fails.
    FullDisk,
    /// Every change that needs space fails from then on.
    StaysFull,
    /// Every change fails from then on.
    StaysBroken,
}

/// The changes that need space.
const NEED_SPACE: [&str; 4] = [
    "store the intent",
    "make the staging folder",
    "stage a file",
    "make a folder",
];

/// The changes of the user's files, after the one that says that they begin.
const REPLACE: [&str; 5] = [
    "store that files are replaced",
    "remove a file",
    "remove a folder",
    "make a folder",
    "replace a file",
];

struct FaultAt {
    kind: FaultKind,
    steps_left: Cell<usize>,
    has_happened: Cell<bool>,
    /// The changes that were made.
    points: RefCell<Vec<&'static str>>,
}

impl FaultAt {
    fn new(kind: FaultKind, step: usize) -> Self {
        Self {
            kind,
            steps_left: Cell::new(step),
            has_happened: Cell::new(false),
            points: RefCell::default(),
        }
    }

    /// Reports whether the fault happened.
    fn has_happened(&self) -> bool {
        self.has_happened.get()
    }

    fn happens(&self, point: &'static str) -> bool {
        let left = self.steps_left.get();
        self.steps_left.set(left.saturating_sub(1));
        left == 0
            && match self.kind {
                FaultKind::Death | FaultKind::FullDisk => !self.has_happened(),
                FaultKind::StaysFull => NEED_SPACE.contains(&point),
                FaultKind::StaysBroken => true,
            }
    }
}

impl Faults for FaultAt {
    fn reach(&self, point: &'static str) -> io::Result<()> {
        if !self.happens(point) {
            self.points.borrow_mut().push(point);
            return Ok(());
        }
        self.has_happened.set(true);
        match self.kind {
            FaultKind::Death => panic!("the process dies: {point}"),
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

/// Makes the state before an agent's changes.
fn prepare_old(at: &Fixture) {
    at.write("user", "not touched\n");
    at.write("changed", "old\n");
    at.write("deleted/inner/file", "deleted\n");
    at.chmod("deleted/inner", 0o750);
    at.write("locked/inner/file", "in folders that are read only\n");
    at.chmod("locked/inner", 0o500);
    at.chmod("locked", 0o555);
    at.write("becomes a folder", "file\n");
    at.write("becomes a file/inner", "inner\n");
    at.link("target", "link");
    at.write("run", "#!/bin/sh\n");
}

/// Makes both states of an agent's change of every kind.
fn prepare(at: &Fixture) -> (Workspace, Snapshot, Snapshot, BTreeSet<WorkspacePath>) {
    prepare_old(at);
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("changed", "new\n");
    fs::remove_dir_all(at.path("deleted")).expect("a folder");
    for folder in ["locked", "locked/inner"] {
        at.chmod(folder, 0o755);
    }
    fs::remove_dir_all(at.path("locked")).expect("a folder");
    at.write("made/by/agent", "made\n");
    at.remove("becomes a folder");
    at.write("becomes a folder/inner", "inner\n");
    fs::remove_dir_all(at.path("becomes a file")).expect("a folder");
    at.write("becomes a file", "file\n");
    at.remove("link");
    at.write("link", "a file\n");
    at.chmod("run", 0o755);
    let after = snapshot(&mut workspace);
    let diff = workspace.diff(&before, &after).expect("a diff");
    let changed = changed_paths(&diff);
    (workspace, before, after, changed)
}

fn plan(
    workspace: &mut Workspace,
    (to, known): (&Snapshot, &Snapshot),
    changed: &BTreeSet<WorkspacePath>,
    overwrite: &[&str],
) -> RestorePlan {
    let request = RestoreRequest {
        to,
        known,
        paths: changed,
        overwrite: &paths(overwrite),
    };
    workspace.plan_restore(&request).expect("a plan")
}

/// All files and links, and all folders with their modes.
type FullState = (FolderState, BTreeMap<String, u32>);

fn full_state(at: &Fixture) -> FullState {
    (at.state(), folders(at))
}

/// Lists folders too, which the plain state does not, with their modes.
fn folders(at: &Fixture) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let mut open = vec![at.folder.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a kind").is_dir() {
                let path = entry.path();
                let name = path.strip_prefix(&at.folder).expect("a path");
                let mode = entry.metadata().expect("metadata").permissions().mode();
                found.insert(name.display().to_string(), mode & 0o777);
                open.push(path);
            }
        }
    }
    found
}

#[test]
fn restore_returns_to_the_old_state_and_back() {
    let at = Fixture::new();
    let (mut workspace, before, after, changed) = prepare(&at);
    let new = full_state(&at);
    let plan_back = plan(&mut workspace, (&before, &after), &changed, &[]);
    assert!(plan_back.conflicts.is_empty(), "{:?}", plan_back.conflicts);
    assert_eq!(full_state(&at), new, "a plan changes nothing");
    let outcome = workspace.restore(&plan_back, &NoFaults).expect("a restore");
    assert_eq!(outcome.restored.len(), plan_back.steps.len());
    assert_eq!(snapshot(&mut workspace).entries(), before.entries());
    // A second restore reverses the first.
    let redo = plan(&mut workspace, (&after, &before), &changed, &[]);
    workspace.restore(&redo, &NoFaults).expect("a restore");
    assert_eq!(full_state(&at), new);
    // There is nothing left to do.
    let again = plan(&mut workspace, (&after, &before), &changed, &[]);
    assert!(again.steps.is_empty() && again.conflicts.is_empty());
    let outcome = workspace.restore(&again, &NoFaults).expect("a restore");
    assert_eq!(outcome, RestoreOutcome::default());
}

#[test]
fn what_the_user_changed_since_is_a_conflict_and_stays() {
    let at = Fixture::new();
    let (mut workspace, before, after, changed) = prepare(&at);
    at.write("changed", "by the user\n");
    at.write("made/by/user", "stays\n");
    at.remove("run");
    at.write("deleted/inner/file", "made again\n");
    at.write("becomes a folder/user", "stays\n");
    let planned = plan(&mut workspace, (&before, &after), &changed, &[]);
    let conflicts: Vec<String> = planned
        .conflicts
        .iter()
        .map(|it| it.path.to_string())
        .collect();
    assert_eq!(
        conflicts,
        ["changed", "deleted/inner/file", "run", "becomes a folder"]
    );
    // Both versions are at hand.
    let of_changed = &planned.conflicts[0];
    let text = |entry: Option<raddle_workspace::FileEntry>| {
        let entry = entry.expect("an entry");
        String::from_utf8(workspace.content(&entry.hash).expect("content")).expect("text")
    };
    assert_eq!(text(of_changed.before), "old\n");
    assert_eq!(text(of_changed.known), "new\n");
    assert_eq!(text(of_changed.now), "by the user\n");
    workspace.restore(&planned, &NoFaults).expect("a restore");
    let content = |it: &str| fs::read_to_string(at.path(it)).expect("a file");
    assert_eq!(content("changed"), "by the user\n");
    assert_eq!(content("made/by/user"), "stays\n");
    assert_eq!(content("deleted/inner/file"), "made again\n");
    assert_eq!(content("becomes a folder/user"), "stays\n");
    assert!(!at.path("made/by/agent").exists() && !at.path("run").exists());
    assert!(!at.path("becomes a folder/inner").exists());

    // Named paths are replaced; what they had is in the snapshot of the plan.
    let planned = plan(
        &mut workspace,
        (&before, &after),
        &changed,
        &["changed", "run"],
    );
    assert_eq!(planned.steps.len(), 2);
    workspace.restore(&planned, &NoFaults).expect("a restore");
    assert_eq!(
        (content("changed"), content("run")),
        ("old\n".into(), "#!/bin/sh\n".into())
    );
    let replaced = planned.current.entry(&path("changed")).expect("an entry");
    assert_eq!(
        workspace.content(&replaced.hash).expect("content"),
        b"by the user\n"
    );
}

#[test]
fn file_in_a_folder_that_cannot_be_read_is_a_conflict() {
    let at = Fixture::new();
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("made/by/agent", "made\n");
    let after = snapshot(&mut workspace);
    at.chmod("made", 0o000);
    // Nothing keeps root from reading it.
    let is_readable = fs::read_dir(at.path("made")).is_ok();
    let made = paths(&["made/by/agent"]);
    let planned = plan(&mut workspace, (&before, &after), &made, &[]);
    let counts = (planned.steps.len(), planned.conflicts.len());
    assert_eq!(counts, if is_readable { (1, 0) } else { (0, 1) });
    at.chmod("made", 0o755);
    let planned = plan(&mut workspace, (&before, &after), &made, &[]);
    assert_eq!((planned.steps.len(), planned.conflicts.len()), (1, 0));
}

#[test]
fn change_after_the_plan_stops_the_restore() {
    let at = Fixture::new();
    let (mut workspace, before, after, changed) = prepare(&at);
    let planned = plan(&mut workspace, (&before, &after), &changed, &[]);
    at.write("run", "by the user\n");
    let state = at.state();
    let stopped = workspace.restore(&planned, &NoFaults);
    assert!(matches!(stopped, Err(Error::Changed(_))), "{stopped:?}");
    assert_eq!(at.state(), state);
    assert_eq!(workspace.recover(&NoFaults).expect("a recovery"), None);
}

/// Removal of a file by the user when a restore comes to a step.
struct RemovalAt<'a>(&'static str, &'a Fixture, &'static str);

impl Faults for RemovalAt<'_> {
    fn reach(&self, point: &'static str) -> io::Result<()> {
        let Self(at, folder, file) = self;
        if point == *at && folder.path(file).exists() {
            folder.remove(file);
        }
        Ok(())
    }
}

#[test]
fn file_that_the_user_removes_during_a_restore_stays_removed() {
    let at = Fixture::new();
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    let made = paths(&["a", "b"]);
    for name in ["a", "b"] {
        at.write(name, "made\n");
    }
    let after = snapshot(&mut workspace);
    let planned = plan(&mut workspace, (&before, &after), &made, &[]);
    let stopped = workspace.restore(&planned, &RemovalAt("remove a file", &at, "b"));
    assert!(matches!(stopped, Err(Error::Changed(_))), "{stopped:?}");
    // The restore is undone, but for the file that it had not removed.
    assert!(at.path("a").exists() && !at.path("b").exists());
}

/// Runs a restore with a fault at a step; returns the state, and whether the fault happened.
fn run_with_fault(kind: FaultKind, step: usize) -> (Fixture, [FullState; 2], FaultAt, Workspace) {
    let at = Fixture::new();
    let (mut workspace, before, after, changed) = prepare(&at);
    let new = full_state(&at);
    let planned = plan(&mut workspace, (&before, &after), &changed, &[]);
    let faults = FaultAt::new(kind, step);
    let result = catch_unwind(AssertUnwindSafe(|| workspace.restore(&planned, &faults)));
    if kind != FaultKind::Death {
        let error = result.expect("no panic").err();
        assert_eq!(error.is_some(), faults.has_happened());
        // The error says so if nothing remains to be done.
        let is_clean = workspace.snapshot(&BTreeSet::new()).is_ok();
        let says_so = matches!(error, None | Some(Error::NotRestored(_)));
        assert_eq!(says_so, is_clean, "{kind:?} {step}: {error:?}");
    }
    let copy = Fixture::new();
    prepare_old(&copy);
    (at, [full_state(&copy), new], faults, workspace)
}

#[test]
fn death_at_any_step_leaves_the_old_or_the_new_state_after_recovery() {
    let mut outcomes = BTreeSet::new();
    for step in 0.. {
        let (at, [old, new], faults, workspace) = run_with_fault(FaultKind::Death, step);
        let has_died = faults.has_happened();
        drop(workspace);
        let mut workspace = at.open();
        if workspace.snapshot(&BTreeSet::new()).is_err() {
            // Nothing goes on before the recovery, and the recovery may die as well.
            for again in 0.. {
                let faults = FaultAt::new(FaultKind::Death, again);
                let recovered = catch_unwind(AssertUnwindSafe(|| workspace.recover(&faults)));
                drop(workspace);
                workspace = at.open();
                if let Ok(recovered) = recovered {
                    let recovered = recovered.expect("a recovery").expect("an outcome");
                    assert!(recovered.conflicts.is_empty(), "{step}: {recovered:?}");
                    break;
                }
                if again % 3 == 2 {
                    workspace.recover(&NoFaults).expect("a recovery");
                    break;
                }
            }
        }
        assert_eq!(workspace.recover(&NoFaults).expect("a recovery"), None);
        let state = full_state(&at);
        let point = faults.points.borrow().last().copied();
        assert!(state == old || state == new, "{step} {point:?}: {state:?}");
        outcomes.insert(state == old);
        snapshot(&mut workspace);
        if !has_died {
            break;
        }
    }
    assert_eq!(outcomes.len(), 2, "both states were seen");
}

#[test]
fn full_disk_at_any_step_leaves_the_state_from_before() {
    for step in 0.. {
        let (at, [old, new], faults, workspace) = run_with_fault(FaultKind::FullDisk, step);
        let has_failed = faults.has_happened();
        let expected = if has_failed { new } else { old };
        let point = faults.points.borrow().last().copied();
        assert_eq!(full_state(&at), expected, "{step} {point:?}");
        drop(workspace);
        assert_eq!(at.open().recover(&NoFaults).expect("a recovery"), None);
        if !has_failed {
            break;
        }
    }
}

#[test]
fn full_disk_that_stays_full_leaves_the_state_from_before() {
    for step in 0.. {
        let (at, [old, new], faults, workspace) = run_with_fault(FaultKind::StaysFull, step);
        let has_replaced = REPLACE.iter().any(|it| faults.points.borrow().contains(it));
        drop(workspace);
        let recovered = at.open().recover(&NoFaults).expect("a recovery");
        if !faults.has_happened() {
            assert_eq!((full_state(&at), recovered), (old, None));
            break;
        }
        // A disk that filled up later delays the undoing, and never completes the restore.
        assert!(
            recovered.is_none_or(|it| has_replaced && it.is_undone),
            "{step}"
        );
        assert_eq!(full_state(&at), new, "{step}");
        let staging = folders(&at).into_keys().find(|it| it.contains(".raddle-"));
        assert_eq!(staging, None, "{step}");
    }
}

#[test]
fn restore_that_replaced_nothing_is_undone_after_any_failure() {
    for step in 0.. {
        let (at, [old, new], faults, workspace) = run_with_fault(FaultKind::StaysBroken, step);
        let has_replaced = REPLACE.iter().any(|it| faults.points.borrow().contains(it));
        drop(workspace);
        let recovered = at.open().recover(&NoFaults).expect("a recovery");
        if has_replaced {
            assert!([old, new].contains(&full_state(&at)), "{step}");
        } else {
            assert_eq!(full_state(&at), new, "{step}");
            assert!(recovered.is_none_or(|it| it.is_undone), "{step}");
        }
        if !faults.has_happened() {
            break;
        }
    }
}

#[test]
fn change_by_the_user_after_a_death_is_reported_and_stays() {
    let (at, [old, _], faults, workspace) = run_with_fault(FaultKind::Death, 30);
    assert!(faults.has_happened());
    drop(workspace);
    at.write("changed", "by the user\n");
    let mut workspace = at.open();
    let outcome = workspace
        .recover(&NoFaults)
        .expect("a recovery")
        .expect("an outcome");
    assert_eq!(outcome.conflicts, [path("changed")]);
    let mut state = full_state(&at);
    let mut expected = old;
    for (files, _) in [&mut state, &mut expected] {
        files.0.remove(&b"changed"[..]);
    }
    assert_eq!(state, expected);
    assert_eq!(
        fs::read_to_string(at.path("changed")).expect("a file"),
        "by the user\n"
    );
}

#[test]
fn folder_swapped_for_a_link_is_not_followed() {
    let at = Fixture::new();
    at.write("folder/file", "old\n");
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("folder/file", "new\n");
    let after = snapshot(&mut workspace);
    let planned = plan(
        &mut workspace,
        (&before, &after),
        &paths(&["folder/file"]),
        &[],
    );
    let outside = at.at.path().join("outside");
    fs::rename(at.path("folder"), &outside).expect("a folder");
    at.link(&outside, "folder");
    let stopped = workspace.restore(&planned, &NoFaults);
    assert!(matches!(stopped, Err(Error::Changed(_))), "{stopped:?}");
    assert_eq!(
        fs::read_to_string(outside.join("file")).expect("a file"),
        "new\n"
    );
    let planned = plan(
        &mut workspace,
        (&before, &after),
        &paths(&["folder/file"]),
        &["folder/file"],
    );
    assert!(planned.steps.is_empty(), "{:?}", planned.steps);
    assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 1);
}
