//! Sessions of several turns, in plain folders and in repositories of git. The user works between
//! the turns, in the window of a command, and while a restore runs.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_workspace::{
    Content, Error, FileChangeKind, NoFaults, RestoreRequest, Snapshot, Workspace, WorkspacePath,
};
use support::Rng;

use super::{EditSession, SessionCounts, clear_path};
use crate::fixture::{
    FolderState, LeafState, bytes_path, changed_paths, check_with_git, git_apply, path,
};

/// Prefix of files that the user writes while a command runs.
const WINDOW: &str = "user-window-";

/// Folders of sessions in a repository of git; of some of them files are absent in a sparse
/// checkout.
const REPOSITORY_FOLDERS: [&[u8]; 8] = [
    b"",
    b"src",
    b"src/deep/er",
    b"sparse",
    b"sub",
    b"sub/inner",
    b"inner repository",
    b"with space",
];

/// A turn, with the snapshots around it and the states that plain reading shows.
struct Turn {
    snapshots: [Snapshot; 2],
    states: [FolderState; 2],
}

/// Changes of several turns together.
struct ChangeSet {
    before: Snapshot,
    after: Snapshot,
    /// Paths that the user changed between two turns that changed them.
    foreign: BTreeSet<WorkspacePath>,
    /// States before the first change of each path, and after the last.
    states: [FolderState; 2],
}

/// Edit by the user at one of the steps of a restore.
struct EditDuring<'a> {
    steps_left: Cell<usize>,
    path: &'a Path,
    how: u64,
    /// State of the path after the edit.
    done: RefCell<Option<Option<LeafState>>>,
}

pub struct TurnSession {
    edits: EditSession,
    is_repository: bool,
}

impl TurnSession {
    pub fn new(seed: u64) -> Self {
        let mut edits = EditSession::new(seed);
        edits.rng = Rng::for_purpose(seed, 1);
        edits.may_ignore = false;
        let is_repository = seed.is_multiple_of(3);
        if is_repository {
            edits.folders = &REPOSITORY_FOLDERS;
        }
        Self {
            edits,
            is_repository,
        }
    }

    pub fn run(mut self) -> SessionCounts {
        let mut counts = SessionCounts {
            repositories: usize::from(self.is_repository),
            ..SessionCounts::default()
        };
        if self.is_repository {
            make_repository(&self.edits.at.at.path().canonicalize().expect("a path"));
        }
        for _ in 0..self.rng().range(5, 30) {
            self.edits.edit();
        }
        let repositories = repository_data(&self.edits.at.folder);
        let mut workspace = self.edits.at.open();
        let mut turns: Vec<Turn> = Vec::new();
        let mut by_user = BTreeSet::new();
        for number in 0..self.rng().range(1, 5) {
            if let Some(last) = turns.last() {
                let changed = last.changed();
                by_user.extend(self.edits.edit_as_user(&changed));
            }
            turns.push(self.turn(&mut workspace, number, &mut counts));
        }
        let first = self.rng().index(turns.len());
        let set = ChangeSet::of(&turns[first..]);
        let all = set.paths();
        by_user.extend(self.edits.edit_as_user(&all));
        counts = counts.plus(self.restore(&mut workspace, &set, &by_user));
        let now = repository_data(&self.edits.at.folder);
        assert!(
            now == repositories,
            "a repository changed: {}",
            self.replay()
        );
        counts
    }

    fn rng(&mut self) -> &mut Rng {
        &mut self.edits.rng
    }

    fn replay(&self) -> String {
        self.edits.replay()
    }

    fn state(&self) -> FolderState {
        FolderState::read(&self.edits.at.folder)
    }

    /// Makes the changes of one turn, and compares its diff with plain reading.
    fn turn(&mut self, workspace: &mut Workspace, number: u64, counts: &mut SessionCounts) -> Turn {
        let nothing = BTreeSet::new();
        let before = workspace.snapshot(&nothing).expect("a snapshot");
        let old = self.state();
        let mut window = 0;
        for _ in 0..self.rng().range(1, 15) {
            match self.rng().below(10) {
                0..=2 => self.shell(),
                3 => window += self.edit_in_window(number),
                _ => self.edits.edit(),
            }
        }
        let after = workspace.snapshot(&nothing).expect("a snapshot");
        let new = self.state();
        let diff = workspace.diff(&before, &after).expect("a diff");
        let shown = changed_paths(&diff);
        let turn = Turn {
            snapshots: [before, after],
            states: [old, new],
        };
        assert_eq!(shown, turn.changed(), "{}", self.replay());
        let is_of_window = |it: &&WorkspacePath| {
            let name = String::from_utf8_lossy(it.name()).into_owned();
            name.starts_with(WINDOW)
        };
        counts.window += window;
        counts.window_shown += shown.iter().filter(is_of_window).count();
        for change in &diff.files {
            for (side, state) in [&change.before, &change.after]
                .into_iter()
                .zip(&turn.states)
            {
                let Some(side) = side else { continue };
                let leaf = state.0.get(side.path.as_bytes()).expect("a file");
                let stored = workspace.content(&side.entry.hash).expect("a content");
                let is_same = match leaf {
                    LeafState::File { mode, bytes } => side.entry.mode == *mode && stored == *bytes,
                    LeafState::Link(target) => stored == *target,
                };
                assert!(is_same, "{:?} {}", side.path, self.replay());
            }
        }
        counts.files += diff.files.len();
        let is_rename = |it: &&raddle_workspace::FileChange| it.kind == FileChangeKind::Renamed;
        counts.renames += diff.files.iter().filter(is_rename).count();
        let omitted = diff
            .files
            .iter()
            .filter(|it| it.content == Content::Omitted);
        counts.omitted += omitted.count();
        let [old, new] = &turn.states;
        check_with_git(old, new, &diff.unified());
        counts.patches += 1;
        if self.is_repository {
            self.check_in_repository(&turn, &diff.unified());
            counts.patches += 1;
        }
        turn
    }

    /// Reverses a patch with git in a copy of the repository, and applies it again.
    fn check_in_repository(&self, turn: &Turn, patch: &[u8]) {
        if patch.is_empty() {
            return;
        }
        let copy = self.edits.at.at.path().join("copy");
        let mut cp = Command::new("cp");
        let copied = cp.arg("-a").arg(&self.edits.at.folder).arg(&copy).status();
        assert!(copied.expect("cp").success());
        for (options, state) in [(&["-R"][..], 0), (&[][..], 1)] {
            let output = git_apply(&copy, patch, options);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success(),
                "{options:?} {errors} {}",
                self.replay()
            );
            let expected = turn.states[state].clone().for_git();
            let found = FolderState::read(&copy).for_git();
            assert!(found == expected, "{options:?} {errors} {}", self.replay());
        }
        fs::remove_dir_all(&copy).expect("a folder");
    }

    /// Makes a change with a shell.
    fn shell(&mut self) {
        let (from, to) = (self.edits.any_path(), self.edits.any_path());
        let [from, to] = [from, to].map(|it| self.edits.at.path(OsStr::from_bytes(&it)));
        let root = self.edits.at.folder.clone();
        // No link may lead a shell to another place.
        let is_plain =
            from.is_file() && !from.is_symlink() && from.canonicalize().is_ok_and(|it| it == from);
        let kind = self.rng().below(6);
        let name = |it: &Path| {
            it.strip_prefix(&root)
                .expect("a path")
                .display()
                .to_string()
        };
        let text = format!("shell {kind} {} {}", name(&from), name(&to));
        self.edits.edits.push(text);
        let script = match kind {
            0 => "printf 'by a shell\\n' > \"$2\"",
            _ if !is_plain => return,
            1 => "printf 'more\\n' >> \"$1\"",
            2 => "cp -p \"$1\" \"$2\"",
            3 => "mv -T \"$1\" \"$2\"",
            4 => "chmod 0750 \"$1\" && sed -i 's/line/LINE/' \"$1\"",
            _ => "rm \"$1\" && ln -s target \"$1\"",
        };
        if matches!(kind, 0 | 2 | 3) {
            if from == to || to.starts_with(&from) || from.starts_with(&to) {
                return;
            }
            clear_path(&root, &to);
            if kind != 0 && !from.is_file() {
                return;
            }
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(&from).arg(&to);
        let status = shell.current_dir(&root).status().expect("a shell");
        assert!(status.success(), "{}", self.replay());
    }

    /// Writes a file of the user while a command runs. Returns the number of files.
    fn edit_in_window(&mut self, number: u64) -> usize {
        let folder = *self.edits.rng.pick(self.edits.folders);
        let at = self.edits.at.path(OsStr::from_bytes(folder));
        if !at.is_dir() || at.canonicalize().is_ok_and(|it| it != at) {
            return 0;
        }
        let at = at.join(format!("{WINDOW}{number}"));
        let is_new = !at.exists();
        fs::write(&at, format!("{}\n", self.edits.rng.bits())).expect("a file");
        usize::from(is_new)
    }

    /// Restores the state before the changes while the user works, and compares every file.
    fn restore(
        &mut self,
        workspace: &mut Workspace,
        set: &ChangeSet,
        by_user: &BTreeSet<Vec<u8>>,
    ) -> SessionCounts {
        let all = set.paths();
        let paths: BTreeSet<WorkspacePath> = all.difference(&set.foreign).cloned().collect();
        let found = self.state();
        let nothing = BTreeSet::new();
        let request = RestoreRequest {
            to: &set.before,
            known: &set.after,
            paths: &paths,
            overwrite: &nothing,
        };
        let plan = workspace.plan_restore(&request).expect("a plan");
        assert!(
            self.state() == found,
            "a plan changes nothing: {}",
            self.replay()
        );
        let conflicts: BTreeSet<&[u8]> =
            plan.conflicts.iter().map(|it| it.path.as_bytes()).collect();
        let mut expected = found.clone();
        for path in paths.iter().map(WorkspacePath::as_bytes) {
            let [before, after] = [0, 1].map(|it: usize| set.states[it].0.get(path));
            let now = found.0.get(path);
            let is_users = now != after && now != before;
            let stays = conflicts.contains(path);
            assert!(
                stays || !is_users,
                "not reported: {path:?} {}",
                self.replay()
            );
            let is_blocked = || {
                let others = found.0.keys().filter(|it| !paths.contains(&bytes_path(it)));
                by_user.iter().chain(others).any(|it| {
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
                match before {
                    Some(leaf) => drop(expected.0.insert(path.to_vec(), leaf.clone())),
                    None => drop(expected.0.remove(path)),
                }
            }
        }
        let (target, during) = self.edit_during(&paths);
        let edit = EditDuring {
            steps_left: Cell::new(during),
            path: &target,
            how: self.rng().below(4),
            done: RefCell::default(),
        };
        let restored = workspace.restore(&plan, &edit);
        let mut counts = SessionCounts {
            steps: plan.steps.len(),
            conflicts: plan.conflicts.len() + set.foreign.len(),
            ..SessionCounts::default()
        };
        let mut expected = match restored {
            Ok(_) => expected,
            Err(Error::Changed(_) | Error::NotRestored(_)) => {
                counts.stopped += 1;
                found
            }
            Err(error) => panic!("{error} {}", self.replay()),
        };
        if let Some(leaf) = edit.done.take() {
            counts.during += 1;
            let name = target.strip_prefix(&self.edits.at.folder).expect("a path");
            let name = name.as_os_str().as_bytes().to_vec();
            match leaf {
                Some(leaf) => drop(expected.0.insert(name, leaf)),
                None => drop(expected.0.remove(&name)),
            }
        }
        let state = self.state();
        assert!(
            state == expected,
            "{:?} at step {during} of {:?}: {} {}",
            edit.how,
            target,
            difference(&state, &expected),
            self.replay()
        );
        assert_eq!(workspace.recover(&NoFaults).expect("a recovery"), None);
        counts
    }

    /// Chooses a file that the user changes while the restore runs, and the step.
    fn edit_during(&mut self, paths: &BTreeSet<WorkspacePath>) -> (PathBuf, usize) {
        let step = usize::try_from(self.rng().below(4 * paths.len() as u64 + 12)).expect("small");
        let paths: Vec<&WorkspacePath> = paths.iter().collect();
        let own = path("user-during");
        let chosen = match paths.is_empty() || self.rng().percent(20) {
            true => own,
            false => (*self.rng().pick(&paths)).clone(),
        };
        (self.edits.at.path(chosen.as_path()), step)
    }
}

impl Turn {
    /// Returns the paths that plain reading shows as changed.
    fn changed(&self) -> BTreeSet<WorkspacePath> {
        let [old, new] = &self.states;
        let paths = old.0.keys().chain(new.0.keys());
        let changed = paths.filter(|it| old.0.get(*it) != new.0.get(*it));
        changed.map(|it| bytes_path(it)).collect()
    }
}

impl ChangeSet {
    /// Composes the changes of turns, as the checkpoints of a thread do.
    fn of(turns: &[Turn]) -> Self {
        let first = &turns[0];
        let [before, after] = first.snapshots.clone();
        let mut set = Self {
            before,
            after,
            foreign: BTreeSet::new(),
            states: first.states.clone(),
        };
        for turn in &turns[1..] {
            let changed = turn.changed();
            let known = set.paths();
            let new: BTreeSet<_> = changed.difference(&known).cloned().collect();
            let [from, to] = &turn.snapshots;
            let again = changed.intersection(&known);
            let is_foreign = |it: &&WorkspacePath| set.after.entry(it) != from.entry(it);
            let foreign: Vec<_> = again.filter(is_foreign).cloned().collect();
            set.foreign.extend(foreign);
            set.before = set.before.with_paths_of(from, &new);
            set.after = set.after.with_paths_of(to, &changed);
            for (side, paths) in [(0, &new), (1, &changed)] {
                for path in paths.iter().map(WorkspacePath::as_bytes) {
                    match turn.states[side].0.get(path) {
                        Some(leaf) => {
                            drop(set.states[side].0.insert(path.to_vec(), leaf.clone()));
                        }
                        None => drop(set.states[side].0.remove(path)),
                    }
                }
            }
        }
        set
    }

    fn paths(&self) -> BTreeSet<WorkspacePath> {
        let changes = self.before.changes(&self.after).into_iter();
        changes.map(|it| it.path).collect()
    }
}

impl raddle_workspace::Faults for EditDuring<'_> {
    fn reach(&self, _point: &'static str) -> io::Result<()> {
        let left = self.steps_left.get();
        self.steps_left.set(left.wrapping_sub(1));
        if left != 0 {
            return Ok(());
        }
        let parent = self.path.parent().expect("a folder");
        let is_plain = parent.canonicalize().is_ok_and(|it| it == parent);
        let is_file = self.path.is_file() && !self.path.is_symlink();
        let is_free = fs::symlink_metadata(self.path).is_err();
        if !is_plain || !is_file && !is_free {
            return Ok(());
        }
        match self.how {
            0 if is_file => fs::remove_file(self.path)?,
            1 => {
                // As an editor saves.
                let saved = self.path.with_file_name("user-saves");
                fs::write(&saved, "by the user, saved\n")?;
                fs::rename(saved, self.path)?;
            }
            _ => fs::write(self.path, "by the user, meanwhile\n")?,
        }
        *self.done.borrow_mut() = Some(LeafState::read(self.path));
        Ok(())
    }
}

/// Describes the paths in which two states differ.
fn difference(found: &FolderState, expected: &FolderState) -> String {
    let paths: BTreeSet<_> = found.0.keys().chain(expected.0.keys()).collect();
    let mut text = String::new();
    for path in paths {
        let (now, then) = (found.0.get(path), expected.0.get(path));
        if now != then {
            let path = String::from_utf8_lossy(path);
            let [now, then] =
                [now, then].map(|it| format!("{it:?}").chars().take(60).collect::<String>());
            text.push_str(&format!("{path:?} is {now} instead of {then}; "));
        }
    }
    text
}

/// Makes a repository with a commit, a submodule, a repository in it, and a sparse checkout.
fn make_repository(at: &Path) {
    let folder = at.join("project");
    let git = |folder: &Path, words: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
            .args(["-c", "protocol.file.allow=always", "-c", "gc.auto=0"])
            .args(words)
            .current_dir(folder)
            .env("HOME", at)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
    };
    let library = at.join("library");
    for (repository, file) in [
        (&library, "inner/main.rs"),
        (&folder, "src/deep/er/main.rs"),
        (&folder.join("inner repository"), "main.rs"),
    ] {
        let file = repository.join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        fs::write(file, "line 1\nline 2\n").expect("a file");
        git(repository, &["init", "--quiet"]);
        if *repository == folder {
            for name in ["sparse/main.rs", "sparse/README", "README"] {
                fs::create_dir_all(folder.join("sparse")).expect("folders");
                fs::write(folder.join(name), "line 1\n").expect("a file");
            }
            let library = library.display().to_string();
            git(&folder, &["submodule", "--quiet", "add", &library, "sub"]);
        }
        git(repository, &["add", "-A"]);
        git(repository, &["commit", "--quiet", "-m", "first"]);
    }
    let patterns = ["/*", "!/sparse/README"];
    git(
        &folder,
        &[
            "sparse-checkout",
            "set",
            "--no-cone",
            patterns[0],
            patterns[1],
        ],
    );
}

/// Returns all data of repositories in a folder.
fn repository_data(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut data = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(inner) = open.pop() {
        for entry in fs::read_dir(inner).expect("a folder") {
            let at = entry.expect("an entry").path();
            let kind = fs::symlink_metadata(&at).expect("metadata");
            if kind.is_dir() {
                open.push(at);
            } else if at.components().any(|it| it.as_os_str() == ".git") && kind.is_file() {
                data.insert(at.clone(), fs::read(at).expect("a file"));
            }
        }
    }
    data
}
