//! Random sessions of edits. The diff is compared with plain reading before and after; the patch
//! goes through git both ways; the restore is compared byte by byte.
//!
//! 40 seeds run with every test run. `RADDLE_WORKSPACE_SEEDS=500` runs more, and
//! `RADDLE_WORKSPACE_SEED=7` runs one. Each seed has a session of one turn, with ignore files and
//! named paths, and one of several turns. Of 500 seeds, three have a file of 1 GB, and two have
//! 10,000 files.

mod large;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use raddle_workspace::{
    Content, FileChange, FileChangeKind, NoFaults, RestoreRequest, Workspace, WorkspaceDiff,
    WorkspacePath,
};
use support::Rng;

use crate::fixture::{Fixture, FolderState, LeafState, bytes_path, changed_paths, check_with_git};

const SEEDS: u64 = 40;

/// Names of folders and files; some are hard to quote, and one is no UTF-8.
const FOLDERS: [&[u8]; 6] = [
    b"",
    b"src",
    b"src/deep/er",
    b"with space",
    b"nested",
    b"ignored",
];
const NAMES: [&[u8]; 12] = [
    b"main.rs",
    b"README",
    b"a b",
    b"quo\"te",
    b"back\\slash",
    b"tab\t",
    b"new\nline",
    b"n\xc3\xa9e",
    b"inv\xff\xfe",
    b"x.log",
    b"Main.rs",
    b"-x",
];

const RULES: &str = "/ignored/\n*.log\n";

#[test]
fn random_sessions_tell_the_truth() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse().ok());
    if let Some(seed) = number("RADDLE_WORKSPACE_SEED") {
        run(seed);
        return;
    }
    let seeds = number("RADDLE_WORKSPACE_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let sum = Mutex::new(SessionCounts::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                break;
            }
            let counts = run(seed);
            let mut sum = sum.lock().expect("no panic");
            *sum = sum.plus(counts);
        }
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    let sum = sum.into_inner().expect("no panic");
    eprintln!("figure: {seeds} seeds");
    for (name, count) in sum.rows() {
        eprintln!("figure: {name}: {count}");
    }
    // The sessions are of use only if all of this happens in them.
    for (name, count) in sum.rows() {
        assert!(count > 0 || MAY_LACK.contains(&name), "{name}");
    }
}

/// Number of sessions at a time.
const WORKERS: usize = 2;

/// Counts that may be zero.
const MAY_LACK: [&str; 3] = ["sessions with 1 GB", "sessions with 10,000 files", OMITTED];

const OMITTED: &str = "files left out of a patch for git, by their size";

fn run(seed: u64) -> SessionCounts {
    let counts = EditSession::new(seed).run();
    let counts = counts.plus(turns::TurnSession::new(seed).run());
    counts.plus(large::run(seed))
}

/// Number of events of a session.
#[derive(Clone, Copy, Default)]
struct SessionCounts {
    files: usize,
    renames: usize,
    binaries: usize,
    steps: usize,
    conflicts: usize,
    /// Changes that are not shown, because the file is ignored.
    ignored: usize,
    repositories: usize,
    /// Patches that git applied and reversed.
    patches: usize,
    omitted: usize,
    /// Files of the user that were written while a command ran, and those in diffs.
    window: usize,
    window_shown: usize,
    /// Edits of the user while a restore ran, and restores that they stopped.
    during: usize,
    stopped: usize,
    gigabytes: usize,
    many: usize,
}

impl SessionCounts {
    fn rows(&self) -> [(&'static str, usize); 15] {
        [
            (
                "changed files of which both sides were compared",
                self.files,
            ),
            ("renames", self.renames),
            ("binaries", self.binaries),
            (
                "changes of ignored files, which are not shown",
                self.ignored,
            ),
            ("sessions in a repository", self.repositories),
            ("patches applied and reversed by git", self.patches),
            (OMITTED, self.omitted),
            ("restored files", self.steps),
            ("conflicts, all reported", self.conflicts),
            ("user's files written while a command ran", self.window),
            ("of these in diffs, not promised", self.window_shown),
            (
                "edits by the user while a restore ran, all kept",
                self.during,
            ),
            ("restores that these stopped, undone whole", self.stopped),
            ("sessions with 1 GB", self.gigabytes),
            ("sessions with 10,000 files", self.many),
        ]
    }

    fn plus(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            renames: self.renames + other.renames,
            binaries: self.binaries + other.binaries,
            steps: self.steps + other.steps,
            conflicts: self.conflicts + other.conflicts,
            ignored: self.ignored + other.ignored,
            repositories: self.repositories + other.repositories,
            patches: self.patches + other.patches,
            omitted: self.omitted + other.omitted,
            window: self.window + other.window,
            window_shown: self.window_shown + other.window_shown,
            during: self.during + other.during,
            stopped: self.stopped + other.stopped,
            gigabytes: self.gigabytes + other.gigabytes,
            many: self.many + other.many,
        }
    }
}

struct EditSession {
    seed: u64,
    rng: Rng,
    at: Fixture,
    named: BTreeSet<WorkspacePath>,
    /// All entries before the changes, and whether each is a folder.
    entries_before: BTreeMap<Vec<u8>, bool>,
    /// The paths of an update, each of which is looked at as a whole.
    updated: BTreeSet<WorkspacePath>,
    edits: Vec<String>,
    folders: &'static [&'static [u8]],
    /// Whether edits may make and remove an ignore file.
    may_ignore: bool,
}

impl EditSession {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            rng: Rng::new(seed),
            at: Fixture::new(),
            named: BTreeSet::new(),
            entries_before: BTreeMap::new(),
            updated: BTreeSet::new(),
            edits: Vec::new(),
            folders: &FOLDERS,
            may_ignore: true,
        }
    }

    fn run(mut self) -> SessionCounts {
        if self.rng.percent(60) {
            self.at.write(".git/HEAD", "ref: refs/heads/main\n");
        }
        if self.rng.percent(60) {
            self.at.write(".gitignore", RULES);
        }
        if self.rng.percent(30) {
            self.at.write("nested/.git", "gitdir: elsewhere\n");
        }
        for _ in 0..self.rng.range(5, 40) {
            self.edit();
        }
        for _ in 0..self.rng.below(3) {
            let path = self.any_path();
            self.named.insert(bytes_path(&path));
        }
        let mut workspace = self.at.open();
        let before = workspace.snapshot(&self.named).expect("a snapshot");
        let old = self.state();
        self.entries_before = entries(&self.at.folder);
        self.edits.clear();
        for _ in 0..self.rng.range(1, 25) {
            self.edit();
        }
        let after = match self.rng.percent(30) {
            // As for a file tool that says what it wrote.
            true => {
                let all = self.all_paths(&old);
                self.updated = all.iter().map(|it| bytes_path(it)).collect();
                let updated = workspace.update(&before, &self.updated);
                updated.expect("a snapshot")
            }
            false => workspace.snapshot(&self.named).expect("a snapshot"),
        };
        let new = self.state();
        let diff = workspace.diff(&before, &after).expect("a diff");
        self.check_diff(&old, &new, &diff);
        let count = |is_one: &dyn Fn(&FileChange) -> bool| {
            diff.files.iter().filter(|it| is_one(it)).count()
        };
        let all = old.0.keys().chain(new.0.keys());
        let is_hidden = |path: &&Vec<u8>| {
            old.0.get(*path) != new.0.get(*path) && !self.is_tracked(path, &old, &new)
        };
        let mut counts = SessionCounts {
            renames: count(&|it| it.kind == FileChangeKind::Renamed),
            binaries: count(&|it| it.content == Content::Binary),
            ignored: all.filter(is_hidden).count(),
            files: diff.files.len(),
            ..SessionCounts::default()
        };
        let tracked =
            |state: &FolderState| state.clone().retain(|it| self.is_tracked(it, &old, &new));
        check_with_git(&tracked(&old), &tracked(&new), &diff.unified());
        counts.patches += 1;
        let loaded = workspace.load(after.id()).expect("the snapshot");
        assert_eq!(loaded.entries(), after.entries(), "{}", self.replay());

        let changed = changed_paths(&diff);
        let by_user = self.edit_as_user(&changed);
        let found = FolderState::read(&self.at.folder);
        counts = counts.plus(self.restore(
            &mut workspace,
            (&before, &after),
            &changed,
            (&old, &new, &found),
            &by_user,
        ));
        // A second restore brings the agent's files back.
        let undone = FolderState::read(&self.at.folder);
        counts = counts.plus(self.restore(
            &mut workspace,
            (&after, &before),
            &changed,
            (&new, &old, &undone),
            &by_user,
        ));
        counts
    }

    fn replay(&self) -> String {
        format!("RADDLE_WORKSPACE_SEED={}: {:#?}", self.seed, self.edits)
    }

    fn state(&self) -> FolderState {
        FolderState::read(&self.at.folder)
    }

    /// The rule of `.gitignore`, without any code of the product.
    fn is_ignored(path: &[u8], state: &FolderState, has_nested: bool) -> bool {
        let is_nested = has_nested && path.starts_with(b"nested/");
        let has_rules = state.0.contains_key(&b".gitignore"[..]);
        has_rules && !is_nested && (path.starts_with(b"ignored/") || has_log_part(path))
    }

    /// Whether the first snapshot does not cover a path: an ignored entry there, or above it, is not
    /// entered.
    fn was_hidden(&self, path: &[u8], old: &FolderState, has_nested: bool) -> bool {
        let ends = (0..=path.len()).filter(|it| path.get(*it).is_none_or(|it| *it == b'/'));
        for prefix in ends.map(|it| &path[..it]) {
            let entry = self.entries_before.get(prefix);
            let is_folder = entry == Some(&true);
            let is_ignored = Self::is_ignored(prefix, old, has_nested)
                || is_folder && Self::is_ignored(&join(prefix, b""), old, has_nested);
            let mut named = self.named.iter();
            let is_entered = is_folder && named.any(|it| it.is_within(&bytes_path(prefix)));
            if is_ignored && !is_entered {
                return entry.is_some();
            }
        }
        false
    }

    /// Whether both snapshots cover a path. A rule does not hide what was there before it.
    fn is_tracked(&self, path: &[u8], old: &FolderState, new: &FolderState) -> bool {
        let has_nested = self.at.path("nested/.git").exists();
        let is_in =
            |paths: &BTreeSet<WorkspacePath>| paths.iter().any(|it| bytes_path(path).is_within(it));
        is_in(&self.named)
            || !self.was_hidden(path, old, has_nested)
                && (!Self::is_ignored(path, new, has_nested)
                    || self.entries_before.contains_key(path)
                    || is_in(&self.updated))
    }

    fn check_diff(&self, old: &FolderState, new: &FolderState, diff: &WorkspaceDiff) {
        let mut expected: BTreeSet<&[u8]> = BTreeSet::new();
        for path in old.0.keys().chain(new.0.keys()) {
            if old.0.get(path) != new.0.get(path) && self.is_tracked(path, old, new) {
                expected.insert(path);
            }
        }
        let shown = changed_paths(diff);
        let shown: BTreeSet<&[u8]> = shown.iter().map(WorkspacePath::as_bytes).collect();
        assert_eq!(shown, expected, "{}", self.replay());
        // No path is changed twice, and the sides are what was there.
        let mut sides: BTreeMap<(bool, &[u8]), &raddle_workspace::FileEntry> = BTreeMap::new();
        for change in &diff.files {
            for (is_new, side) in [(false, &change.before), (true, &change.after)] {
                let Some(side) = side else { continue };
                let twice = sides.insert((is_new, side.path.as_bytes()), &side.entry);
                assert!(twice.is_none(), "{}", self.replay());
            }
        }
        for path in expected {
            for (is_new, state) in [(false, old), (true, new)] {
                let entry = sides.get(&(is_new, path));
                let leaf = state.0.get(path);
                assert_eq!(entry.is_some(), leaf.is_some(), "{}", self.replay());
                if let (Some(entry), Some(LeafState::File { mode, bytes })) = (entry, leaf) {
                    assert_eq!((entry.mode, entry.size), (*mode, bytes.len() as u64));
                }
            }
        }
    }

    fn restore(
        &self,
        workspace: &mut Workspace,
        (to, known): (&raddle_workspace::Snapshot, &raddle_workspace::Snapshot),
        changed: &BTreeSet<WorkspacePath>,
        (old, new, found): (&FolderState, &FolderState, &FolderState),
        by_user: &BTreeSet<Vec<u8>>,
    ) -> SessionCounts {
        let request = RestoreRequest {
            to,
            known,
            paths: changed,
            overwrite: &BTreeSet::new(),
        };
        let plan = workspace.plan_restore(&request).expect("a plan");
        let conflicts: BTreeSet<&[u8]> =
            plan.conflicts.iter().map(|it| it.path.as_bytes()).collect();
        workspace.restore(&plan, &NoFaults).expect("a restore");
        let mut expected = found.clone();
        for path in changed.iter().map(WorkspacePath::as_bytes) {
            let now = found.0.get(path);
            let is_users = now != new.0.get(path) && now != old.0.get(path);
            let stays = conflicts.contains(path);
            assert!(
                stays || !is_users,
                "not reported: {path:?} {}",
                self.replay()
            );
            // A path that the user did not touch is a conflict only where the user's file is in
            // the way, or one that is not covered.
            let is_blocked = || {
                let hidden = found.0.keys();
                let hidden = hidden.filter(|it| !changed.contains(&bytes_path(it)));
                by_user.iter().chain(hidden).any(|it| {
                    let (path, it) = (bytes_path(path), bytes_path(it));
                    path != it && (it.is_within(&path) || path.is_within(&it))
                })
            };
            assert!(
                is_users || !stays || is_blocked(),
                "{path:?} {}",
                self.replay()
            );
            if !stays {
                match old.0.get(path) {
                    Some(leaf) => drop(expected.0.insert(path.to_vec(), leaf.clone())),
                    None => drop(expected.0.remove(path)),
                }
            }
        }
        assert_eq!(
            FolderState::read(&self.at.folder),
            expected,
            "{}",
            self.replay()
        );
        SessionCounts {
            steps: plan.steps.len(),
            conflicts: plan.conflicts.len(),
            ..SessionCounts::default()
        }
    }

    /// Changes some of the agent's files and adds some of the user's own.
    fn edit_as_user(&mut self, changed: &BTreeSet<WorkspacePath>) -> BTreeSet<Vec<u8>> {
        let mut by_user = BTreeSet::new();
        for path in changed {
            if !self.rng.percent(15) {
                continue;
            }
            let at = self.at.path(path.as_path());
            let is_file = fs::symlink_metadata(&at).is_ok_and(|it| it.is_file());
            if is_file && self.rng.percent(70) {
                let content = format!("by the user {}\n", self.rng.bits());
                fs::write(&at, content).expect("a file");
            } else if is_file {
                fs::remove_file(&at).expect("a file");
            }
            by_user.insert(path.as_bytes().to_vec());
        }
        for number in 0..self.rng.below(3) {
            let folder = *self.rng.pick(self.folders);
            let at = self.at.path(OsStr::from_bytes(folder));
            if at.is_dir() && !at.is_symlink() {
                let name = format!("user-{number}");
                fs::write(at.join(&name), "the user's own\n").expect("a file");
                by_user.insert(join(folder, name.as_bytes()));
            }
        }
        by_user
    }

    fn any_path(&mut self) -> Vec<u8> {
        let folder = *self.rng.pick(self.folders);
        let name = *self.rng.pick(&NAMES);
        join(folder, name)
    }

    /// All paths that may have changed: those of the session and those that were there.
    fn all_paths(&self, old: &FolderState) -> BTreeSet<Vec<u8>> {
        let mut all: BTreeSet<Vec<u8>> = BTreeSet::new();
        let new = self.state();
        for state in [old, &new] {
            let covered = state.0.keys().filter(|it| self.is_tracked(it, old, &new));
            all.extend(covered.cloned());
        }
        all
    }

    /// Makes one change of a random kind.
    fn edit(&mut self) {
        let path = self.any_path();
        let at = self.at.path(OsStr::from_bytes(&path));
        let kind = self.rng.below(13);
        self.edits.push(format!(
            "{kind} {}",
            at.strip_prefix(&self.at.folder).expect("a path").display()
        ));
        match kind {
            0..=3 => {
                let text = self.text();
                self.put(&at, &text);
            }
            4 | 5 => self.change(&at),
            6 => {
                let length = self.rng.range(1, 400) as usize;
                let bytes: Vec<u8> = (0..length).map(|_| self.rng.bits() as u8).collect();
                self.put(&at, &[&bytes[..], b"\0"].concat());
            }
            7 => remove(&at),
            8 => {
                let to = self.any_path();
                let to = self.at.path(OsStr::from_bytes(&to));
                if at.is_symlink() || at.is_file() {
                    clear_path(&self.at.folder, &to);
                    // The way to the new name may have led over the old one.
                    if at.is_symlink() || at.is_file() {
                        fs::rename(&at, &to).expect("a file");
                    }
                }
            }
            9 => {
                let target = *self.rng.pick(&["target", "/etc/passwd", "..", "no\u{e9}"]);
                clear_path(&self.at.folder, &at);
                symlink(target, &at).expect("a link");
            }
            10 => {
                if at.is_file() && !at.is_symlink() {
                    let mode = *self.rng.pick(&[0o644, 0o755, 0o600, 0o700, 0o664]);
                    fs::set_permissions(&at, fs::Permissions::from_mode(mode)).expect("a mode");
                }
            }
            11 if !self.may_ignore => {}
            11 => {
                let rules = self.at.path(".gitignore");
                match rules.exists() {
                    true => fs::remove_file(rules).expect("a file"),
                    false => fs::write(rules, RULES).expect("a file"),
                }
            }
            _ => {
                // A folder in place of a file.
                let text = self.text();
                self.put(&at.join("inner"), &text);
            }
        }
    }

    fn put(&mut self, at: &Path, content: &[u8]) {
        clear_path(&self.at.folder, at);
        fs::write(at, content).expect("a file");
    }

    fn text(&mut self) -> Vec<u8> {
        let end = *self.rng.pick(&["\n", "\n", "\n", "\r\n"]);
        let mut text = String::new();
        for _ in 0..self.rng.below(50) {
            text.push_str(&format!("line {}{end}", self.rng.below(20)));
        }
        if self.rng.percent(20) {
            text.push_str("the end");
        }
        text.into_bytes()
    }

    /// Changes some lines of a text.
    fn change(&mut self, at: &Path) {
        if !at.is_file() || at.is_symlink() {
            return;
        }
        let content = fs::read(at).expect("a file");
        let lines = content.split_inclusive(|it| *it == b'\n');
        let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
        for _ in 0..self.rng.range(1, 5) {
            let place = self.rng.index(lines.len() + 1);
            let line = format!("changed {}\n", self.rng.below(9)).into_bytes();
            match self.rng.below(3) {
                0 => lines.insert(place, line),
                1 if place < lines.len() => drop(lines.remove(place)),
                _ if place < lines.len() => lines[place] = line,
                _ => {}
            }
        }
        fs::write(at, lines.concat()).expect("a file");
    }
}

fn has_log_part(path: &[u8]) -> bool {
    path.split(|it| *it == b'/').any(|it| it.ends_with(b".log"))
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder.is_empty() {
        true => name.to_vec(),
        false => [folder, b"/", name].concat(),
    }
}

fn entries(folder: &Path) -> BTreeMap<Vec<u8>, bool> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(inner).expect("a folder") {
            let path = entry.expect("an entry").path();
            let is_folder = path.is_dir() && !path.is_symlink();
            let name = path.strip_prefix(folder).expect("a path");
            found.insert(name.as_os_str().as_bytes().to_vec(), is_folder);
            if is_folder {
                open.push(path);
            }
        }
    }
    found
}

fn remove(at: &Path) {
    let Ok(metadata) = fs::symlink_metadata(at) else {
        return;
    };
    match metadata.is_dir() {
        true => fs::remove_dir_all(at).expect("a folder"),
        false => fs::remove_file(at).expect("a file"),
    }
}

/// Removes what is at a path, and files in the places of its folders, and makes the folders.
fn clear_path(root: &Path, at: &Path) {
    let inner = at.strip_prefix(root).expect("a path");
    let mut folder = PathBuf::from(root);
    for part in inner.parent().expect("a folder") {
        folder.push(part);
        if folder.is_symlink() || folder.is_file() {
            fs::remove_file(&folder).expect("a file");
        }
    }
    fs::create_dir_all(&folder).expect("folders");
    remove(at);
}
