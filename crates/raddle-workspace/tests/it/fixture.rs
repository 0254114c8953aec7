//! A workspace with its store, and the state of a folder as plain reading shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use raddle_workspace::{
    FileChange, Snapshot, SnapshotLimits, Workspace, WorkspaceDiff, WorkspacePath,
};
use tempfile::TempDir;

pub struct Fixture {
    pub at: TempDir,
    pub folder: PathBuf,
}

impl Fixture {
    pub fn new() -> Self {
        // In memory where possible, because a restore synchronises each file.
        let memory = Path::new("/dev/shm");
        let at = match memory.is_dir() {
            true => TempDir::new_in(memory),
            false => TempDir::new(),
        };
        let at = at.expect("a folder");
        let real = at.path().canonicalize().expect("a path");
        let folder = real.join("project");
        fs::create_dir(&folder).expect("a folder");
        Self { at, folder }
    }

    pub fn store(&self) -> PathBuf {
        self.at.path().join("store")
    }

    pub fn open(&self) -> Workspace {
        self.open_within(SnapshotLimits::default())
    }

    pub fn open_within(&self, limits: SnapshotLimits) -> Workspace {
        // A process that another test starts has the lock too, until it runs its program.
        Workspace::open_waiting(&self.folder, &self.store(), limits).expect("a workspace")
    }

    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.folder.join(path)
    }

    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    pub fn remove(&self, path: impl AsRef<Path>) {
        fs::remove_file(self.path(path)).expect("a file");
    }

    pub fn chmod(&self, path: impl AsRef<Path>, mode: u32) {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).expect("a mode");
    }

    pub fn link(&self, target: impl AsRef<Path>, path: impl AsRef<Path>) {
        symlink(target, self.path(path)).expect("a link");
    }

    pub fn state(&self) -> FolderState {
        FolderState::read(&self.folder)
    }
}

/// Mode and content of a file, or the target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeafState {
    File { mode: u32, bytes: Vec<u8> },
    Link(Vec<u8>),
}

impl LeafState {
    /// Reads a file or a link; `None` if there is none.
    pub fn read(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        if metadata.is_symlink() {
            let target = fs::read_link(path).expect("a link").into_os_string();
            return Some(Self::Link(target.into_vec()));
        }
        let bytes = metadata
            .is_file()
            .then(|| fs::read(path).expect("a file"))?;
        let mode = metadata.mode() & 0o777;
        Some(Self::File { mode, bytes })
    }
}

/// All files and links of a folder, by path, as plain reading shows them. Data of repositories is
/// left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderState(pub BTreeMap<Vec<u8>, LeafState>);

impl FolderState {
    pub fn read(folder: &Path) -> Self {
        let mut state = Self::default();
        state.add(folder, &mut Vec::new());
        state
    }

    fn add(&mut self, folder: &Path, path: &mut Vec<u8>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_name() == ".git" {
                continue;
            }
            let length = path.len();
            if length > 0 {
                path.push(b'/');
            }
            path.extend(entry.file_name().as_bytes());
            let at = entry.path();
            let metadata = fs::symlink_metadata(&at).expect("metadata");
            if metadata.is_dir() {
                self.add(&at, path);
            } else if let Some(leaf) = LeafState::read(&at) {
                self.0.insert(path.clone(), leaf);
            }
            path.truncate(length);
        }
    }

    /// Writes the files to an empty folder.
    pub fn write(&self, folder: &Path) {
        for (path, leaf) in &self.0 {
            let path = folder.join(OsStr::from_bytes(path));
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            match leaf {
                LeafState::Link(target) => {
                    symlink(OsString::from_vec(target.clone()), path).expect("a link");
                }
                LeafState::File { mode, bytes } => {
                    fs::write(&path, bytes).expect("a file");
                    fs::set_permissions(path, fs::Permissions::from_mode(*mode)).expect("a mode");
                }
            }
        }
    }

    /// Returns the state as git knows it: of the mode, only whether the user may execute the file.
    pub fn for_git(mut self) -> Self {
        for leaf in self.0.values_mut() {
            if let LeafState::File { mode, .. } = leaf {
                *mode = if *mode & 0o100 != 0 { 0o755 } else { 0o644 };
            }
        }
        self
    }

    pub fn retain(mut self, is_covered: impl Fn(&[u8]) -> bool) -> Self {
        self.0.retain(|path, _| is_covered(path));
        self
    }
}

pub fn path(path: impl AsRef<Path>) -> WorkspacePath {
    WorkspacePath::new(path).expect("a path")
}

pub fn bytes_path(bytes: &[u8]) -> WorkspacePath {
    path(OsStr::from_bytes(bytes))
}

/// Returns a set of paths.
pub fn paths(names: &[&str]) -> BTreeSet<WorkspacePath> {
    names.iter().map(path).collect()
}

pub fn snapshot(workspace: &mut Workspace) -> Snapshot {
    workspace.snapshot(&BTreeSet::new()).expect("a snapshot")
}

/// Returns the paths on both sides of all changes.
pub fn changed_paths(diff: &WorkspaceDiff) -> BTreeSet<WorkspacePath> {
    let sides = |it: &FileChange| [it.before.clone(), it.after.clone()];
    let sides = diff.files.iter().flat_map(sides).flatten();
    sides.map(|it| it.path).collect()
}

/// Applies a patch with git in a folder that is no repository.
pub fn git_apply(folder: &Path, patch: &[u8], options: &[&str]) -> Output {
    let file = folder.with_extension("patch");
    fs::write(&file, patch).expect("a patch");
    let mut git = Command::new("git");
    git.arg("apply")
        .args(options)
        .arg("--whitespace=nowarn")
        .arg(&file);
    git.current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env(
            "GIT_CEILING_DIRECTORIES",
            folder.parent().expect("a folder"),
        );
    git.output().expect("git")
}

/// Checks that git applies a patch to the one state and gets the other, and reverses it.
#[track_caller]
pub fn check_with_git(before: &FolderState, after: &FolderState, patch: &[u8]) {
    let at = TempDir::new().expect("a folder");
    let folder = at.path().join("tree");
    fs::create_dir(&folder).expect("a folder");
    before.write(&folder);
    if patch.is_empty() {
        assert_eq!(before.clone().for_git(), after.clone().for_git());
        return;
    }
    for (options, expected) in [(&[][..], after), (&["-R"][..], before)] {
        let output = git_apply(&folder, patch, options);
        assert!(
            output.status.success(),
            "git apply {options:?}: {}\n{}",
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(patch),
        );
        let state = FolderState::read(&folder).for_git();
        assert_eq!(
            state,
            expected.clone().for_git(),
            "{}",
            String::from_utf8_lossy(patch)
        );
    }
}
