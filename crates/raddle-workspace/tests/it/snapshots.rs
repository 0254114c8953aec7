//! Coverage of a snapshot, the cost of the next one, and the store.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use raddle_workspace::{
    EntryKind, Error, GapReason, RetentionLimits, Snapshot, SnapshotLimits, Workspace, prune_store,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::fixture::{Fixture, path, paths, snapshot};

fn names(snapshot: &Snapshot) -> Vec<String> {
    let entries = snapshot.entries().into_iter();
    entries.map(|(path, _)| path.to_string()).collect()
}

fn gaps(snapshot: &Snapshot) -> Vec<(String, GapReason)> {
    let text = |it: &raddle_workspace::Gap| {
        let path = it.path.as_ref().map_or(".".to_owned(), ToString::to_string);
        (path, it.reason)
    };
    snapshot.gaps().iter().map(text).collect()
}

/// Waits until the times of a file are older than those that a later change can have.
fn settle(path: &Path) {
    let metadata = fs::symlink_metadata(path).expect("metadata");
    let ns = u64::try_from(metadata.ctime_nsec()).expect("a time");
    let changed = Duration::from_secs(metadata.ctime() as u64) + Duration::from_nanos(ns);
    let settled = SystemTime::UNIX_EPOCH + changed + Duration::from_millis(60);
    while SystemTime::now() < settled {
        std::thread::yield_now();
    }
}

#[test]
fn entries_have_kind_mode_and_content() {
    let at = Fixture::new();
    at.write("folder/run.sh", "#!/bin/sh\r\n");
    at.chmod("folder/run.sh", 0o750);
    at.link("../outside", "folder/link");
    fs::create_dir(at.path("empty")).expect("a folder");
    let mut workspace = at.open();
    let taken = snapshot(&mut workspace);
    assert_eq!(
        names(&taken),
        ["empty", "folder", "folder/link", "folder/run.sh"]
    );
    let file = taken.entry(&path("folder/run.sh")).expect("a file");
    assert_eq!(
        (file.kind, file.mode, file.size),
        (EntryKind::File, 0o750, 11)
    );
    assert_eq!(
        workspace.content(&file.hash).expect("content"),
        b"#!/bin/sh\r\n"
    );
    let link = taken.entry(&path("folder/link")).expect("a link");
    assert_eq!(link.kind, EntryKind::Symlink);
    assert_eq!(
        workspace.content(&link.hash).expect("content"),
        b"../outside"
    );
    assert!(taken.gaps().is_empty());
}

#[test]
fn unchanged_files_are_not_read_again_and_cost_no_space() {
    let at = Fixture::new();
    for number in 0..20 {
        at.write(
            format!("folder-{}/file-{number}", number % 3),
            format!("{number}"),
        );
    }
    settle(&at.path("folder-1/file-19"));
    let mut workspace = at.open();
    let first = snapshot(&mut workspace);
    assert_eq!(workspace.files_read(), 20);
    let bytes = workspace.stored_bytes();
    let second = snapshot(&mut workspace);
    assert_eq!((second.id(), workspace.files_read()), (first.id(), 0));
    assert_eq!(workspace.stored_bytes(), bytes);
    assert_eq!(workspace.snapshots().expect("snapshots").len(), 1);

    at.write("folder-1/file-1", "new");
    let third = snapshot(&mut workspace);
    assert_ne!(third.id(), first.id());
    assert_eq!(workspace.files_read(), 1);

    // The stamps outlive the process.
    drop(workspace);
    settle(&at.path("folder-1/file-1"));
    let mut workspace = at.open();
    assert_eq!(snapshot(&mut workspace).id(), third.id());
    // The last file was read too soon after it was written to believe its stamp.
    assert_eq!(workspace.files_read(), 1);
    assert_eq!(snapshot(&mut workspace).id(), third.id());
    assert_eq!(workspace.files_read(), 0);
}

#[test]
fn change_in_the_same_tick_with_the_same_size_shows() {
    let at = Fixture::new();
    let mut workspace = at.open();
    let mut last = None;
    for round in 0..50 {
        at.write("file", format!("{round:02}"));
        let id = snapshot(&mut workspace).id();
        assert_ne!(Some(id), last);
        last = Some(id);
    }
}

#[test]
fn damaged_or_missing_stamps_cost_time_only() {
    let at = Fixture::new();
    at.write("file", "content");
    let mut workspace = at.open();
    let id = snapshot(&mut workspace).id();
    drop(workspace);
    let stamps = at.store().join("stamps");
    let mut bytes = fs::read(&stamps).expect("stamps");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&stamps, bytes).expect("stamps");
    let mut workspace = at.open();
    assert_eq!(snapshot(&mut workspace).id(), id);
    drop(workspace);
    fs::remove_file(stamps).expect("stamps");
    assert_eq!(snapshot(&mut at.open()).id(), id);
}

#[test]
fn ignored_files_are_gaps_unless_named() {
    let at = Fixture::new();
    at.write(".gitignore", "/build/\n*.log\n!keep.log\n");
    at.write("inner/.gitignore", "secret\n");
    for name in [
        "build/out/a.o",
        "build/b.o",
        "x.log",
        "keep.log",
        "inner/secret",
        "inner/y.log",
    ] {
        at.write(name, name);
    }
    let mut workspace = at.open();
    let taken = snapshot(&mut workspace);
    assert_eq!(
        names(&taken),
        [".gitignore", "inner", "inner/.gitignore", "keep.log"]
    );
    let ignored = ["build", "inner/secret", "inner/y.log", "x.log"];
    let ignored = ignored.map(|it| (it.to_owned(), GapReason::Ignored));
    assert_eq!(gaps(&taken), ignored);
    assert!(!taken.covers(&path("build/new")));
    assert!(taken.covers(&path("new")));

    let named = paths(&["build/out/a.o", "build/new.o", "x.log"]);
    let taken = workspace.snapshot(&named).expect("a snapshot");
    let covered = ["build", "build/out", "build/out/a.o", "x.log"];
    assert!(covered.iter().all(|it| taken.entry(&path(it)).is_some()));
    assert_eq!(taken.entry(&path("build/b.o")), None);
    assert!(taken.covers(&path("build/new.o")) && !taken.covers(&path("build/b.o")));
    // A named folder is covered as a whole.
    let taken = workspace.snapshot(&paths(&["build"])).expect("a snapshot");
    assert!(taken.entry(&path("build/b.o")).is_some());
    assert!(taken.covers(&path("build/new")));
}

#[test]
fn repositories_have_their_own_rules_and_their_data_is_left_out() {
    let at = Fixture::new();
    at.write(".git/info/exclude", "excluded\n");
    at.write(".gitignore", "*.o\n");
    at.write("excluded", "");
    at.write("nested/.git/config", "");
    at.write("nested/a.o", "");
    at.write("submodule/.git", "gitdir: ../.git/modules/submodule\n");
    at.write("submodule/a.o", "");
    at.write("case/.GIT/config", "");
    let taken = snapshot(&mut at.open());
    let expected = [
        ".gitignore",
        "case",
        "nested",
        "nested/a.o",
        "submodule",
        "submodule/a.o",
    ];
    assert_eq!(names(&taken), expected);
    let repository = |it: &str| (it.to_owned(), GapReason::Repository);
    let mut expected = vec![("excluded".to_owned(), GapReason::Ignored)];
    expected.extend([".git", "case/.GIT", "nested/.git", "submodule/.git"].map(repository));
    expected.sort();
    assert_eq!(gaps(&taken), expected);
}

#[test]
fn pipes_sockets_and_unreadable_files_are_gaps() {
    let at = Fixture::new();
    mknodat(
        CWD,
        at.path("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    let _socket = UnixListener::bind(at.path("socket")).expect("a socket");
    at.write("file", "content");
    let mut workspace = at.open();
    let mut taken = snapshot(&mut workspace);
    assert_eq!(names(&taken), ["file"]);
    let special = |it: &str| (it.to_owned(), GapReason::Special);
    assert_eq!(gaps(&taken), ["pipe", "socket"].map(special));
    // The administrator reads everything.
    if !rustix::process::geteuid().is_root() {
        at.chmod("file", 0);
        taken = snapshot(&mut workspace);
        assert!(gaps(&taken).contains(&("file".to_owned(), GapReason::Unreadable)));
    }
    assert!(!taken.covers(&path("pipe")));
}

#[test]
fn limits_degrade_and_say_so() {
    let at = Fixture::new();
    at.write("a/large", [7u8; 2_000]);
    at.write("a/small", "1");
    at.write("b/1", "1");
    at.write("c/1", "1");
    let limits = SnapshotLimits {
        files_max: 2,
        file_bytes_max: 1_000,
        bytes_max: 1_000_000,
    };
    let taken = snapshot(&mut at.open_within(limits));
    assert_eq!(names(&taken), ["a", "a/small", "b", "b/1"]);
    let expected = [(".", GapReason::TooMany), ("a/large", GapReason::TooLarge)];
    assert_eq!(
        gaps(&taken),
        expected.map(|(path, reason)| (path.to_owned(), reason))
    );
    assert!(taken.covers(&path("b/1")) && !taken.covers(&path("c/1")));

    let limits = SnapshotLimits {
        files_max: 10,
        file_bytes_max: 10_000,
        bytes_max: 2_001,
    };
    let taken = snapshot(&mut at.open_within(limits));
    assert_eq!(
        gaps(&taken),
        ["b/1", "c/1"].map(|it| (it.to_owned(), GapReason::TooMany))
    );
    // A file that is not covered is not called deleted.
    let mut workspace = at.open();
    let whole = snapshot(&mut workspace);
    let diff = workspace.diff(&whole, &taken).expect("a diff");
    assert!(diff.files.is_empty(), "{:?}", diff.files);
    assert_eq!(diff.gaps.len(), 2);
}

#[test]
fn large_and_incompressible_contents_come_back() {
    let at = Fixture::new();
    let mut rng = support::Rng::new(3);
    let noise: Vec<u8> = (0..300_000)
        .flat_map(|_| rng.bits().to_le_bytes())
        .collect();
    let contents = [
        noise.clone(),
        vec![0; 5_000_000],
        Vec::new(),
        b"x".to_vec(),
        noise,
    ];
    for (number, content) in contents.iter().enumerate() {
        at.write(number.to_string(), content);
    }
    let mut workspace = at.open();
    let taken = snapshot(&mut workspace);
    // The equal contents are stored once.
    assert!(workspace.stored_bytes() < 2_500_000);
    drop(workspace);
    let workspace = at.open();
    let loaded = workspace.load(taken.id()).expect("the snapshot");
    assert_eq!(loaded.entries(), taken.entries());
    for (number, content) in contents.iter().enumerate() {
        let entry = loaded.entry(&path(number.to_string())).expect("a file");
        assert_eq!(&workspace.content(&entry.hash).expect("content"), content);
    }
}

#[test]
fn update_looks_at_the_named_paths_alone() {
    let at = Fixture::new();
    for name in ["a/1", "a/2", "b", "c/d/e", "z"] {
        at.write(name, name);
    }
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("a/1", "changed");
    at.write("a/2", "changed too");
    at.write("new/x/y", "new");
    at.remove("z");
    fs::remove_dir_all(at.path("c")).expect("a folder");
    at.write("c", "a file now");
    let named = paths(&["a/1", "new/x/y", "z", "c/d/e", "absent/x"]);
    let after = workspace.update(&before, &named).expect("a snapshot");
    assert_eq!(
        names(&after),
        ["a", "a/1", "a/2", "b", "c", "new", "new/x", "new/x/y"]
    );
    let entry = |it: &Snapshot, name: &str| it.entry(&path(name)).expect("an entry");
    assert_ne!(entry(&after, "a/1"), entry(&before, "a/1"));
    assert_eq!(entry(&after, "a/2"), entry(&before, "a/2"));
    // A walk finds the rest.
    let walked = snapshot(&mut workspace);
    assert_ne!(entry(&walked, "a/2"), entry(&before, "a/2"));
    let loaded = workspace.load(after.id()).expect("the snapshot");
    assert_eq!(loaded.entries(), after.entries());
}

#[test]
fn store_is_private_and_open_once() {
    let at = Fixture::new();
    at.write("file", "content");
    let mut workspace = at.open();
    snapshot(&mut workspace);
    let mut folders = vec![at.store()];
    while let Some(folder) = folders.pop() {
        let mode = |it: &Path| fs::metadata(it).expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        for entry in fs::read_dir(&folder).expect("a folder") {
            let at = entry.expect("an entry").path();
            match at.is_dir() {
                true => folders.push(at),
                false => assert_eq!(mode(&at), 0o600, "{}", at.display()),
            }
        }
    }
    let second = Workspace::open(&at.folder, &at.store(), SnapshotLimits::default());
    assert!(matches!(second, Err(Error::Busy(_))));
}

#[test]
fn store_in_the_workspace_is_a_gap_and_a_workspace_in_the_store_is_refused() {
    let at = Fixture::new();
    at.write("file", "");
    let limits = SnapshotLimits::default();
    let store = at.path(".store");
    let mut workspace = Workspace::open(&at.folder, &store, limits).expect("a workspace");
    let taken = snapshot(&mut workspace);
    assert_eq!(names(&taken), ["file"]);
    assert_eq!(gaps(&taken), [(".store".to_owned(), GapReason::Store)]);
    let inside = Workspace::open(&store.join("packs"), &at.store(), limits);
    drop((inside, workspace));
    let nested = Workspace::open(&store.join("packs"), &store, limits);
    assert!(matches!(nested, Err(Error::Nested(_))));
}

#[test]
fn damaged_content_is_reported_and_never_returned() {
    let at = Fixture::new();
    at.write(
        "file",
        "a content that is long enough to be told from noise",
    );
    let mut workspace = at.open();
    let taken = snapshot(&mut workspace);
    drop(workspace);
    let packs = fs::read_dir(at.store().join("packs")).expect("packs");
    for pack in packs {
        let pack = pack.expect("a pack").path();
        let bytes = fs::read(&pack).expect("a pack");
        for place in [0, 20, bytes.len() - 200, bytes.len() - 50, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x55;
            fs::write(&pack, &damaged).expect("a pack");
            let opened = Workspace::open(&at.folder, &at.store(), SnapshotLimits::default());
            let read = opened.and_then(|it| {
                let loaded = it.load(taken.id())?;
                let entry = loaded.entry(&path("file")).expect("a file");
                it.content(&entry.hash)
            });
            assert!(
                matches!(read, Err(Error::Damaged { .. } | Error::NoContent(_))),
                "{place}: {read:?}"
            );
        }
        fs::write(&pack, &bytes).expect("a pack");
    }
    assert_eq!(
        at.open().load(taken.id()).expect("the snapshot").entries(),
        taken.entries()
    );
}

#[test]
fn pruning_by_age_and_size_keeps_what_is_needed() {
    let at = Fixture::new();
    let mut rng = support::Rng::new(5);
    let mut noise = || -> Vec<u8> { (0..1_000).flat_map(|_| rng.bits().to_le_bytes()).collect() };
    at.write("stays", noise());
    let mut workspace = at.open();
    let mut taken = Vec::new();
    for _ in 0..6 {
        at.write("changes", noise());
        taken.push(snapshot(&mut workspace));
    }
    let ids =
        |from: usize, to: usize| -> Vec<_> { taken[from..to].iter().map(Snapshot::id).collect() };
    let now = SystemTime::now();
    let limits = RetentionLimits::default();
    let report = workspace
        .prune(&limits, &BTreeSet::new(), now)
        .expect("a pruning");
    assert!(report.removed.is_empty() && report.bytes_now == report.bytes_before);

    let limits = RetentionLimits {
        bytes_max: 28_000,
        ..limits
    };
    let keep = BTreeSet::from([taken[0].id()]);
    let report = workspace.prune(&limits, &keep, now).expect("a pruning");
    assert_eq!(report.removed, ids(1, 5));
    assert!(report.bytes_now < 28_000, "{report:?}");
    for kept in [&taken[0], &taken[5]] {
        let loaded = workspace.load(kept.id()).expect("the snapshot");
        for (path, entry) in loaded.entries() {
            let content = workspace.content(&entry.hash).expect("content");
            assert_eq!(content.len() as u64, entry.size, "{path}");
        }
    }
    let removed = workspace.load(taken[2].id());
    assert!(matches!(removed, Err(Error::NoSnapshot(_))));

    let later = now + Duration::from_secs(31 * 24 * 3600);
    let report = workspace
        .prune(&limits, &BTreeSet::new(), later)
        .expect("a pruning");
    assert_eq!(report.removed.len(), 2);
    assert_eq!(report.bytes_now, 0);
    drop(workspace);
    // The folder is covered again.
    let mut workspace = at.open();
    assert_eq!(snapshot(&mut workspace).id(), taken[5].id());
    let entry = taken[5].entry(&path("changes")).expect("a file");
    assert_eq!(
        workspace.content(&entry.hash).expect("content").len(),
        8_000
    );
}

#[test]
fn pruning_reads_each_folder_once() {
    const FOLDERS: u64 = 30;
    const SNAPSHOTS: u64 = 20;
    let at = Fixture::new();
    for number in 0..FOLDERS {
        at.write(format!("folder-{number}/file"), format!("{number}"));
    }
    let mut workspace = at.open();
    for number in 0..SNAPSHOTS {
        at.write("folder-0/file", format!("changed {number}"));
        snapshot(&mut workspace);
    }
    let prune = |workspace: &mut Workspace, limits: RetentionLimits| {
        let pruned = workspace.prune(&limits, &BTreeSet::new(), SystemTime::now());
        pruned.expect("a pruning")
    };
    let report = prune(&mut workspace, RetentionLimits::default());
    assert!(report.removed.is_empty(), "{report:?}");
    // Each snapshot has a root and a changed folder of its own.
    assert_eq!(report.folders_read, FOLDERS - 1 + 2 * SNAPSHOTS);
    // Older snapshots are not read once the newer ones fill the store.
    let bytes_max = report.bytes_now / 3;
    let report = prune(
        &mut workspace,
        RetentionLimits {
            bytes_max,
            ..RetentionLimits::default()
        },
    );
    let stay = SNAPSHOTS - report.removed.len() as u64;
    assert!(stay > 0 && stay < SNAPSHOTS, "{report:?}");
    assert!(
        report.folders_read <= FOLDERS - 1 + 2 * (stay + 1),
        "{report:?}"
    );
}

#[test]
fn pruning_removes_a_damaged_snapshot_and_goes_on() {
    let at = Fixture::new();
    let mut workspace = at.open();
    let mut taken = Vec::new();
    for content in ["one", "two", "three"] {
        at.write("file", content);
        taken.push(snapshot(&mut workspace));
    }
    let damaged = taken[1].id();
    fs::write(at.store().join(format!("snapshots/{damaged}")), "damaged").expect("a record");
    let limits = RetentionLimits::default();
    let pruned = workspace.prune(&limits, &BTreeSet::from([damaged]), SystemTime::now());
    assert_eq!(pruned.expect("a pruning").removed, [damaged]);
    for whole in [&taken[0], &taken[2]] {
        let loaded = workspace.load(whole.id()).expect("the snapshot");
        assert_eq!(loaded.entries(), whole.entries());
    }
}

#[test]
fn pruning_keeps_a_folder_that_is_also_the_content_of_a_file() {
    let at = Fixture::new();
    at.write("folder/inner", "the content");
    at.chmod("folder/inner", 0o644);
    // The stored form of that folder, in a file that a walk meets before it.
    let mut form = vec![0u8];
    form.extend(0o644u32.to_le_bytes());
    form.extend(11u64.to_le_bytes());
    form.extend(raddle_workspace::ContentHash::of(b"the content").as_bytes());
    form.extend(5u32.to_le_bytes());
    form.extend(b"inner");
    at.write("copy", &form);
    let mut workspace = at.open();
    let taken = snapshot(&mut workspace);
    let limits = RetentionLimits::default();
    let pruned = workspace.prune(&limits, &BTreeSet::new(), SystemTime::now());
    assert_eq!(pruned.expect("a pruning").folders_read, 2);
    let entry = taken.entry(&path("folder/inner")).expect("a file");
    assert_eq!(
        workspace.content(&entry.hash).expect("content"),
        b"the content"
    );
}

#[test]
fn gaps_of_many_snapshots_are_stored_once() {
    const IGNORED: usize = 2_000;
    let at = Fixture::new();
    at.write(".gitignore", "*.o\n");
    for number in 0..IGNORED {
        at.write(format!("folder/a file with a long name {number}.o"), "");
    }
    let mut workspace = at.open();
    let mut taken = Vec::new();
    let mut bytes = Vec::new();
    for number in 0..3 {
        at.write("file", format!("{number}"));
        taken.push(snapshot(&mut workspace));
        bytes.push(workspace.stored_bytes());
    }
    let listed = fs::read_dir(at.store().join("snapshots")).expect("records");
    let records = listed.map(|it| it.and_then(|it| it.metadata()).expect("metadata").len());
    assert!(records.sum::<u64>() < 1_000);
    assert!(
        bytes[1] - bytes[0] < 2_000 && bytes[2] - bytes[1] < 2_000,
        "{bytes:?}"
    );
    drop(workspace);
    let mut workspace = at.open();
    let limits = RetentionLimits::default();
    let pruned = workspace.prune(&limits, &BTreeSet::new(), SystemTime::now());
    assert!(pruned.expect("a pruning").removed.is_empty());
    for it in &taken {
        assert_eq!(it.gaps().len(), IGNORED);
        assert_eq!(
            workspace.load(it.id()).expect("the snapshot").gaps(),
            it.gaps()
        );
    }
}

#[test]
fn packs_of_many_snapshots_are_joined_without_a_pruning() {
    let at = Fixture::new();
    let mut workspace = at.open();
    let packs = || {
        fs::read_dir(at.store().join("packs"))
            .expect("packs")
            .count()
    };
    let mut taken = Vec::new();
    for number in 0..300 {
        at.write("file", format!("content {number}"));
        taken.push(snapshot(&mut workspace));
        assert!(packs() <= 256, "{number}: {}", packs());
    }
    assert!(packs() < 100, "{}", packs());
    let check = |workspace: &Workspace| {
        for (number, it) in taken.iter().enumerate() {
            let loaded = workspace.load(it.id()).expect("the snapshot");
            let entry = loaded.entry(&path("file")).expect("a file");
            let content = workspace.content(&entry.hash).expect("content");
            assert_eq!(content, format!("content {number}").as_bytes());
        }
    };
    check(&workspace);
    drop(workspace);
    check(&at.open());
}

#[test]
fn store_is_pruned_without_its_workspace_and_removed_when_it_is_empty() {
    let at = Fixture::new();
    at.write("file", "content");
    let mut workspace = at.open();
    let taken = snapshot(&mut workspace);
    let limits = RetentionLimits::default();
    let busy = prune_store(&at.store(), &limits);
    assert!(matches!(busy, Err(Error::Busy(_))), "{busy:?}");
    fs::remove_dir_all(&at.folder).expect("a folder");
    // This handle lives on without the lock, as in a server.
    workspace.unlock().expect("no lock");
    let report = prune_store(&at.store(), &limits).expect("a pruning");
    assert!(report.removed.is_empty() && at.store().exists());
    let nothing = RetentionLimits {
        bytes_max: 0,
        ..limits
    };
    let report = prune_store(&at.store(), &nothing).expect("a pruning");
    assert_eq!((report.removed, report.bytes_now), (vec![taken.id()], 0));
    let left = fs::read_dir(at.at.path()).expect("a folder").count();
    assert_eq!(left, 0, "the store is gone, and nothing is beside it");
    // Nothing is made by a pruning.
    assert!(prune_store(&at.store(), &limits).is_err() && !at.store().exists());

    workspace.lock().expect("the lock");
    at.write("file", "content");
    assert!(!workspace.has(taken.id()));
    let error = Workspace::open(&at.folder, &at.store(), SnapshotLimits::default()).err();
    assert!(matches!(error, Some(Error::Busy(_))), "{error:?}");
    drop(workspace);
    assert_eq!(snapshot(&mut at.open()).entries(), taken.entries());
}
