//! Sessions with a file of 1 GB, or with 10,000 generated files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use raddle_workspace::{
    Content, NoFaults, RestoreRequest, Snapshot, SnapshotLimits, Workspace, WorkspaceDiff,
};
use support::Rng;

use super::SessionCounts;
use crate::fixture::{FolderState, changed_paths, check_with_git, snapshot};

const GIGABYTE: usize = 1 << 30;
const FILES: usize = 10_000;

/// Size, mode and hash of each file, as plain reading shows them.
type Digest = BTreeMap<PathBuf, (u64, u32, u64)>;

/// Runs the session of a seed, if it has one.
pub fn run(seed: u64) -> SessionCounts {
    let mut counts = SessionCounts::default();
    match seed % 200 {
        50 => {
            counts.gigabytes = 1;
            session(&mut counts, seed, large_file);
        }
        150 => {
            counts.many = 1;
            session(&mut counts, seed, many_files);
        }
        _ => {}
    }
    counts
}

fn session(counts: &mut SessionCounts, seed: u64, change: impl Fn(&Path, &mut Rng)) {
    let mut rng = Rng::for_purpose(seed, 2);
    // On a disk, because a file system in memory may be small.
    let at = tempfile::tempdir().expect("a folder");
    let real = at.path().canonicalize().expect("a path");
    let (folder, store) = (real.join("project"), real.join("store"));
    fs::create_dir(&folder).expect("a folder");
    // The first state has them too, so that there is something to change and to delete.
    change(&folder, &mut rng);
    fs::write(folder.join("user"), "the user's own\n").expect("a file");
    let limits = SnapshotLimits::default();
    let mut workspace = Workspace::open_waiting(&folder, &store, limits).expect("a workspace");
    let before = snapshot(&mut workspace);
    let old = digest(&folder);
    let state = |is_large: bool| match is_large {
        true => None,
        false => Some(FolderState::read(&folder)),
    };
    let old_state = state(counts.gigabytes > 0);
    change(&folder, &mut rng);
    let after = snapshot(&mut workspace);
    let new = digest(&folder);
    let new_state = state(counts.gigabytes > 0);
    assert!(before.gaps().is_empty() && after.gaps().is_empty());
    let diff = workspace.diff(&before, &after).expect("a diff");
    check_diff(&diff, &old, &new, seed);
    counts.files += diff.files.len();
    let omitted = diff
        .files
        .iter()
        .filter(|it| it.content == Content::Omitted);
    let omitted = omitted.count();
    counts.omitted += omitted;
    if let (Some(old), Some(new), 0) = (&old_state, &new_state, omitted) {
        check_with_git(old, new, &diff.unified());
        counts.patches += 1;
    }
    let mut restore = |to: &Snapshot, known: &Snapshot, expected: &Digest| {
        let request = RestoreRequest {
            to,
            known,
            paths: &changed_paths(&diff),
            overwrite: &Default::default(),
        };
        let plan = workspace.plan_restore(&request).expect("a plan");
        assert!(
            plan.conflicts.is_empty(),
            "seed {seed}: {:?}",
            plan.conflicts
        );
        workspace.restore(&plan, &NoFaults).expect("a restore");
        assert!(digest(&folder) == *expected, "seed {seed}");
        counts.steps += plan.steps.len();
    };
    restore(&before, &after, &old);
    restore(&after, &before, &new);
}

fn check_diff(diff: &WorkspaceDiff, old: &Digest, new: &Digest, seed: u64) {
    let shown = changed_paths(diff);
    let shown: Vec<&Path> = shown.iter().map(|it| it.as_path()).collect();
    let mut expected: Vec<&PathBuf> = old.keys().chain(new.keys()).collect();
    expected.sort();
    expected.dedup();
    expected.retain(|it| old.get(*it) != new.get(*it));
    let mut shown = shown;
    shown.sort();
    assert!(shown.iter().eq(expected.iter()), "seed {seed}");
}

/// Makes or changes a file of 1 GB. Half of it is random, so that it does not compress to nothing.
fn large_file(folder: &Path, rng: &mut Rng) {
    let mut file = File::create(folder.join("large")).expect("a file");
    let mut block = vec![0; 1 << 20];
    for _ in 0..GIGABYTE >> 20 {
        for word in block.chunks_exact_mut(16) {
            word[..8].copy_from_slice(&rng.bits().to_le_bytes());
        }
        file.write_all(&block).expect("a write");
    }
    fs::write(folder.join("small"), format!("{}\n", rng.bits())).expect("a file");
}

/// Makes, changes and deletes some of 10,000 files in folders, of several kinds.
fn many_files(folder: &Path, rng: &mut Rng) {
    for number in 0..FILES {
        let at = folder.join(format!(
            "generated-{}/{}/file {number}",
            number % 7,
            number % 40
        ));
        match rng.below(4) {
            0 if at.exists() => fs::remove_file(&at).expect("a file"),
            1 if at.exists() => {}
            _ => {
                fs::create_dir_all(at.parent().expect("a folder")).expect("folders");
                let end = *rng.pick(&["\n", "\r\n", "\0\n", ""]);
                fs::write(&at, format!("{number}{end}{}{end}", rng.bits())).expect("a file");
            }
        }
    }
}

/// Reads all files. The hash is FNV-1a, which the product does not use.
fn digest(folder: &Path) -> Digest {
    let mut files = Digest::new();
    let mut open = vec![folder.to_owned()];
    let mut buffer = vec![0; 1 << 20];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(inner).expect("a folder") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("metadata");
            if metadata.is_dir() {
                open.push(path);
                continue;
            }
            let mut file = File::open(&path).expect("a file");
            let mut hash = 0xcbf2_9ce4_8422_2325_u64;
            loop {
                let count = file.read(&mut buffer).expect("a read");
                if count == 0 {
                    break;
                }
                for byte in &buffer[..count] {
                    hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
                }
            }
            let name = path.strip_prefix(folder).expect("a path").to_owned();
            files.insert(name, (metadata.len(), metadata.mode() & 0o777, hash));
        }
    }
    files
}
