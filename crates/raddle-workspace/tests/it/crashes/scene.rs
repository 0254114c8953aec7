//! A workspace with an agent's changes of every kind and a user's, and the restore of its
//! checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use raddle_workspace::{
    Error, NoFaults, RestoreOutcome, RestoreRequest, Snapshot, SnapshotLimits, Workspace,
};
use support::Rng;

use crate::fixture::{Fixture, changed_paths, path, snapshot};

/// Bytes of the binaries, so that each takes several writes.
const BINARY_BYTES: usize = 40_000;

/// Path of the file that the user changed after the agent.
const CONFLICT: &str = "conflict";

/// Files in the store of a workspace that are complete. Their names end so, or are these.
const STORE_FILES: [&str; 4] = ["lock", "stamps", "packs", "snapshots"];

/// A prepared workspace. The agent's changes and the user's were made, and nothing was restored.
pub struct Scene {
    pub at: Fixture,
    /// Inode, change time and modification time of the user's files.
    users_files: BTreeMap<PathBuf, (u64, i128, i128)>,
}

/// The two states between which a restore leads.
pub struct States {
    /// Before the restore: the agent's state.
    pub old: TreeState,
    /// After the restore: the state of the checkpoint, with the user's changes.
    pub new: TreeState,
}

/// Names of the snapshots of the scene, which do not depend on where it lies.
#[derive(Clone, Debug)]
pub struct SnapshotNames {
    pub checkpoint: String,
    pub agent: String,
}

/// State of the workspace that a restore left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Old,
    New,
}

impl Scene {
    pub fn new() -> (Self, SnapshotNames) {
        let at = Fixture::new();
        make_checkpoint(&at);
        let mut workspace = at.open();
        let checkpoint = snapshot(&mut workspace);
        change_as_agent(&at);
        let agent = snapshot(&mut workspace);
        let names = SnapshotNames {
            checkpoint: checkpoint.id().to_string(),
            agent: agent.id().to_string(),
        };
        drop(workspace);
        let users_files = change_as_user(&at)
            .into_iter()
            .map(|it| (it.clone(), identity(&at.path(it))))
            .collect();
        (Self { at, users_files }, names)
    }

    /// Checks everything that holds after a restore and its recovery, and returns the state.
    pub fn check(&self, states: &States, names: &SnapshotNames) -> Result<Side, String> {
        let mut workspace = open(&self.at.folder, &self.at.store()).map_err(text("open"))?;
        let recovered = workspace.recover(&NoFaults).map_err(text("recover"))?;
        if let Some(it) = recovered.filter(|it| !it.conflicts.is_empty()) {
            return Err(format!("conflicts of the recovery: {it:?}"));
        }
        if let Some(outcome) = workspace.recover(&NoFaults).map_err(text("recover"))? {
            return Err(format!("a second recovery had work: {outcome:?}"));
        }
        let side = self.side(states)?;
        self.check_store()?;
        // The store is of use: restores lead to both states.
        let (to, expected) = match side {
            Side::Old => ([Side::New, Side::Old], [&states.new, &states.old]),
            Side::New => ([Side::Old, Side::New], [&states.old, &states.new]),
        };
        for (to, expected) in to.into_iter().zip(expected) {
            let restored = restore(&mut workspace, names, to).map_err(text("restore again"))?;
            if restored.is_none() {
                return Err(format!("a second restore to {to:?} has conflicts"));
            }
            let found = TreeState::read(&self.at.folder);
            if found != *expected {
                let difference = found.difference(expected);
                return Err(format!("a second restore to {to:?}: {difference}"));
            }
        }
        drop(workspace);
        self.check_store()?;
        self.check_users_files()?;
        Ok(side)
    }

    /// Returns the state that the workspace has, if it is one of the two as a whole.
    pub fn side(&self, states: &States) -> Result<Side, String> {
        let found = TreeState::read(&self.at.folder);
        self.check_users_files()?;
        if found == states.old {
            Ok(Side::Old)
        } else if found == states.new {
            Ok(Side::New)
        } else {
            let differences = [&states.old, &states.new].map(|it| found.difference(it));
            let shorter = differences.into_iter().min_by_key(String::len);
            Err(format!("neither state: {}", shorter.unwrap_or_default()))
        }
    }

    /// Checks that the user's files were not even replaced by equal ones.
    fn check_users_files(&self) -> Result<(), String> {
        for (path, known) in &self.users_files {
            let now = identity(&self.at.path(path));
            if now != *known {
                return Err(format!("{path:?} of the user was touched"));
            }
        }
        Ok(())
    }

    /// Checks that the store has no temporary file and no intent.
    fn check_store(&self) -> Result<(), String> {
        let store = self.at.store();
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).expect("a folder");
            let names = entries.map(|it| it.expect("an entry").file_name());
            names.map(|it| it.to_string_lossy().into_owned()).collect()
        };
        let mut others = names(&store);
        others.retain(|it| !STORE_FILES.contains(&&**it));
        others.extend(
            names(&store.join("snapshots"))
                .into_iter()
                .filter(|it| it.contains('.')),
        );
        let packs = names(&store.join("packs"));
        others.extend(packs.into_iter().filter(|it| !it.ends_with(".pack")));
        match others.is_empty() {
            true => Ok(()),
            false => Err(format!("left in the store: {others:?}")),
        }
    }
}

impl States {
    /// Makes both states by writing them, without any restore.
    pub fn new() -> Self {
        let (old, _) = Scene::new();
        let new = Fixture::new();
        make_checkpoint(&new);
        change_as_user(&new);
        Self {
            old: TreeState::read(&old.at.folder),
            new: TreeState::read(&new.folder),
        }
    }
}

pub fn open(folder: &Path, store: &Path) -> Result<Workspace, Error> {
    Workspace::open_waiting(folder, store, SnapshotLimits::default())
}

/// Restores the state of one side; `None` if the plan has a conflict that is not the user's.
pub fn restore(
    workspace: &mut Workspace,
    names: &SnapshotNames,
    to: Side,
) -> Result<Option<RestoreOutcome>, Error> {
    let stored = workspace.snapshots()?;
    let load = |name: &str| -> Result<Snapshot, Error> {
        let mut stored = stored.iter();
        let stored = stored.find(|it| it.id.to_string() == name);
        workspace.load(stored.expect("a snapshot of the scene").id)
    };
    let (checkpoint, agent) = (load(&names.checkpoint)?, load(&names.agent)?);
    let diff = workspace.diff(&checkpoint, &agent)?;
    let changed = changed_paths(&diff);
    let (to, known) = match to {
        Side::New => (&checkpoint, &agent),
        Side::Old => (&agent, &checkpoint),
    };
    let request = RestoreRequest {
        to,
        known,
        paths: &changed,
        overwrite: &BTreeSet::new(),
    };
    let plan = workspace.plan_restore(&request)?;
    if plan.conflicts.iter().any(|it| it.path != path(CONFLICT)) {
        return Ok(None);
    }
    workspace.restore(&plan, &NoFaults).map(Some)
}

fn text(what: &'static str) -> impl Fn(Error) -> String {
    move |error| format!("{what}: {error}")
}

/// Makes the state of the checkpoint.
fn make_checkpoint(at: &Fixture) {
    at.write(".git/config", "[core]\n");
    at.write(".gitignore", "/ignored/\n");
    at.write("ignored/cache", "ignored\n");
    at.write("user", "not touched\n");
    at.write("changed", "old\n");
    at.write("crlf", "one\r\ntwo\r\n");
    at.write("binary", binary(1));
    at.write("binary deleted", binary(2));
    at.write("empty", "");
    at.write("src/old name", "renamed\n".repeat(20));
    at.write(OsStr::from_bytes(b"src/inv\xff\xfe"), "no UTF-8\n");
    at.write("run", "#!/bin/sh\n");
    at.write("run and change", "#!/bin/sh\n");
    at.chmod("run and change", 0o700);
    at.link("target", "link");
    at.link("target", "link that becomes a file");
    at.write("file that becomes a link", "file\n");
    at.link("nowhere", "link deleted");
    at.write("becomes a folder", "file\n");
    at.write("becomes a file/inner/most", "inner\n");
    at.chmod("becomes a file/inner", 0o711);
    at.write("deleted/inner/file", "deleted\n");
    at.write("deleted/inner/other", "deleted\n");
    at.chmod("deleted/inner", 0o750);
    at.write("locked/file", "in a folder that is read only\n");
    at.chmod("locked", 0o555);
    at.write(CONFLICT, "old\n");
    at.write("nested/.git", "gitdir: elsewhere\n");
    at.write("nested/file", "old\n");
}

fn change_as_agent(at: &Fixture) {
    at.write("changed", "new\n");
    at.write("crlf", "one\r\nthree\r\n");
    at.write("binary", binary(3));
    at.remove("binary deleted");
    at.write("binary made", binary(4));
    at.remove("empty");
    fs::create_dir(at.path("lib")).expect("a folder");
    fs::rename(at.path("src/old name"), at.path("lib/new name")).expect("a file");
    at.write(OsStr::from_bytes(b"src/inv\xff\xfe"), "changed\n");
    at.chmod("run", 0o755);
    at.write("run and change", "#!/bin/bash\n");
    at.chmod("run and change", 0o755);
    at.remove("link");
    at.link("other target", "link");
    at.remove("link that becomes a file");
    at.write("link that becomes a file", "file\n");
    at.remove("file that becomes a link");
    at.link("target", "file that becomes a link");
    at.remove("link deleted");
    at.link("/nowhere", "link made");
    at.remove("becomes a folder");
    at.write("becomes a folder/inner", "inner\n");
    at.chmod("becomes a folder", 0o770);
    fs::remove_dir_all(at.path("becomes a file")).expect("a folder");
    at.write("becomes a file", "file\n");
    fs::remove_dir_all(at.path("deleted")).expect("a folder");
    at.chmod("locked", 0o755);
    fs::remove_dir_all(at.path("locked")).expect("a folder");
    at.write("made/by/agent", "made\n");
    at.write("made/empty", "");
    at.write(CONFLICT, "new\n");
    at.write("nested/file", "new\n");
}

/// Makes the user's changes, and returns the user's files.
fn change_as_user(at: &Fixture) -> Vec<PathBuf> {
    at.write("made/by/user", "the user's own\n");
    at.write("user's own", "the user's own\n");
    at.write(CONFLICT, "by the user\n");
    let files = [
        "user",
        "ignored/cache",
        ".git/config",
        ".gitignore",
        "nested/.git",
        "made/by/user",
        "user's own",
        CONFLICT,
    ];
    files.map(PathBuf::from).to_vec()
}

fn binary(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let words = std::iter::repeat_with(|| rng.bits().to_le_bytes());
    words.take(BINARY_BYTES / 8).flatten().collect()
}

fn identity(path: &Path) -> (u64, i128, i128) {
    let Ok(it) = fs::symlink_metadata(path) else {
        return (0, 0, 0);
    };
    let ns = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
    (
        it.ino(),
        ns(it.ctime(), it.ctime_nsec()),
        ns(it.mtime(), it.mtime_nsec()),
    )
}

/// Every entry of a folder, by path, as plain reading shows it: folders and repositories too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeState(BTreeMap<PathBuf, TreeEntry>);

#[derive(Clone, PartialEq, Eq)]
struct TreeEntry {
    kind: &'static str,
    mode: u32,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for TreeEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = &self.bytes[..self.bytes.len().min(16)];
        let start = String::from_utf8_lossy(start);
        let Self { kind, mode, bytes } = self;
        write!(f, "{kind} {mode:o} {} bytes {start:?}", bytes.len())
    }
}

impl TreeState {
    pub fn read(folder: &Path) -> Self {
        let mut entries = BTreeMap::new();
        let mut open = vec![folder.to_owned()];
        while let Some(inner) = open.pop() {
            for entry in fs::read_dir(inner).expect("a folder") {
                let path = entry.expect("an entry").path();
                let metadata = fs::symlink_metadata(&path).expect("metadata");
                let mode = metadata.permissions().mode() & 0o7777;
                let (kind, bytes) = if metadata.is_dir() {
                    open.push(path.clone());
                    ("folder", Vec::new())
                } else if metadata.is_symlink() {
                    let target = fs::read_link(&path).expect("a link");
                    ("link", target.into_os_string().into_vec())
                } else {
                    ("file", fs::read(&path).expect("a file"))
                };
                let name = path.strip_prefix(folder).expect("a path").to_owned();
                entries.insert(name, TreeEntry { kind, mode, bytes });
            }
        }
        Self(entries)
    }

    /// Describes the entries in which two states differ.
    pub fn difference(&self, expected: &Self) -> String {
        let paths: BTreeSet<&PathBuf> = self.0.keys().chain(expected.0.keys()).collect();
        let mut text = String::new();
        for path in paths {
            let (now, then) = (self.0.get(path), expected.0.get(path));
            if now != then {
                text.push_str(&format!("{path:?} is {now:?} instead of {then:?}; "));
            }
        }
        text
    }
}
