//! Snapshots composed of two others, snapshots that begin with nothing, and two handles of a store.

use std::collections::BTreeSet;

use raddle_workspace::{Snapshot, SnapshotLimits, Workspace, WorkspacePath};

use crate::fixture::{Fixture, path, paths, snapshot};

/// Lists the files and links with their sizes.
fn listed(snapshot: &Snapshot) -> Vec<String> {
    let entries = snapshot.entries().into_iter();
    let files = entries.filter(|(_, it)| it.kind != raddle_workspace::EntryKind::Folder);
    files
        .map(|(path, it)| format!("{path} {}", it.size))
        .collect()
}

#[test]
fn a_composed_snapshot_has_the_named_paths_of_the_other() {
    let at = Fixture::new();
    at.write("kept", "1");
    at.write("changed", "1");
    at.write("deleted/inner/file", "1");
    at.write("becomes a folder", "1");
    at.write("becomes a file/inner", "1");
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("kept", "22");
    at.write("changed", "22");
    at.remove("deleted/inner/file");
    at.remove("becomes a folder");
    at.write("becomes a folder/inner", "22");
    at.remove("becomes a file/inner");
    std::fs::remove_dir(at.path("becomes a file")).expect("an empty folder");
    at.write("becomes a file", "22");
    at.write("new/deep/file", "22");
    let after = snapshot(&mut workspace);
    let all: BTreeSet<_> = before
        .changes(&after)
        .into_iter()
        .map(|it| it.path)
        .collect();
    // The named paths, and the files of the composed snapshot.
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &[],
            &[
                "becomes a file/inner 1",
                "becomes a folder 1",
                "changed 1",
                "deleted/inner/file 1",
                "kept 1",
            ],
        ),
        (
            &["changed"],
            &[
                "becomes a file/inner 1",
                "becomes a folder 1",
                "changed 2",
                "deleted/inner/file 1",
                "kept 1",
            ],
        ),
        (
            &["deleted/inner/file"],
            &[
                "becomes a file/inner 1",
                "becomes a folder 1",
                "changed 1",
                "kept 1",
            ],
        ),
        (
            &["becomes a folder", "becomes a folder/inner"],
            &[
                "becomes a file/inner 1",
                "becomes a folder/inner 2",
                "changed 1",
                "deleted/inner/file 1",
                "kept 1",
            ],
        ),
        (
            &["becomes a file", "becomes a file/inner"],
            &[
                "becomes a file 2",
                "becomes a folder 1",
                "changed 1",
                "deleted/inner/file 1",
                "kept 1",
            ],
        ),
        (
            &["new/deep/file"],
            &[
                "becomes a file/inner 1",
                "becomes a folder 1",
                "changed 1",
                "deleted/inner/file 1",
                "kept 1",
                "new/deep/file 2",
            ],
        ),
    ];
    for (named, expected) in cases {
        let named = paths(named);
        let composed = before.with_paths_of(&after, &named);
        assert_eq!(listed(&composed), expected, "{named:?}");
        let changed: BTreeSet<_> = before
            .changes(&composed)
            .into_iter()
            .map(|it| it.path)
            .collect();
        assert_eq!(changed, named);
        workspace.keep(&composed).expect("stored");
        let loaded = workspace
            .load(composed.id())
            .expect("the composed snapshot");
        assert_eq!(loaded.entries(), composed.entries());
    }
    let whole = before.with_paths_of(&after, &all);
    assert_eq!(listed(&whole), listed(&after));
}

#[test]
fn a_snapshot_of_nothing_grows_by_the_named_paths_alone() {
    let at = Fixture::new();
    at.write(".gitignore", "*.log\n");
    at.write("seen", "1");
    at.write("not seen", "1");
    let mut workspace = at.open();
    let nothing = workspace.not_visited();
    assert!(!nothing.covers(&path("seen")));
    let named = paths(&["seen", "new", "x.log"]);
    let before = workspace.update(&nothing, &named).expect("a snapshot");
    at.write("seen", "22");
    at.write("new", "22");
    at.write("x.log", "22");
    at.write("not seen", "22");
    let after = workspace.update(&before, &named).expect("a snapshot");
    let diff = workspace.diff(&before, &after).expect("a diff");
    let changed: BTreeSet<WorkspacePath> = crate::fixture::changed_paths(&diff);
    assert_eq!(changed, named);
    assert_eq!(workspace.files_read(), 3);
}

#[test]
fn two_handles_use_one_store_in_turn() {
    let at = Fixture::new();
    at.write("file", "one\n");
    let mut first = at.open();
    let one = snapshot(&mut first);
    first.unlock().expect("unlocked");
    let open = || Workspace::open_waiting(&at.folder, &at.store(), SnapshotLimits::default());
    let mut second = open().expect("a second handle");
    at.write("file", "two\n");
    let two = snapshot(&mut second);
    second.unlock().expect("unlocked");
    first.lock().expect("locked");
    let loaded = first
        .load(two.id())
        .expect("the snapshot of the other handle");
    let diff = first.diff(&one, &loaded).expect("a diff");
    assert_eq!(diff.files.len(), 1);
    first.unlock().expect("unlocked");
    // The second handle removes what it took, and the first notices.
    second.lock().expect("locked");
    let limits = raddle_workspace::RetentionLimits {
        age_max: std::time::Duration::ZERO,
        bytes_max: 0,
    };
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
    second
        .prune(&limits, &BTreeSet::new(), later)
        .expect("pruned");
    second.unlock().expect("unlocked");
    first.lock().expect("locked");
    assert!(first.load(two.id()).is_err());
    let again = snapshot(&mut first);
    assert_eq!(again.id(), two.id());
    assert!(first.load(again.id()).is_ok());
}
