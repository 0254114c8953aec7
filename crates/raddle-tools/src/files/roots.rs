//! Folders that the tools of a thread may read and write.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use raddle_core::policy::PathPattern;
use raddle_sandbox::{
    LoweredRights, Policy, ReadScope, SandboxRules, Tmp, git_control_paths, scratch_folders,
};
use rustix::fs::{Mode, OFlags, Stat, open};
use rustix::io::Errno;

use super::error::ToolError;
use super::open::{Contents, contents, disk, open_file, refuse_unless_file};
use super::walk::{self, FileId, FinalLink, FollowedPath, Kind, OpenMode};

/// Folders that tools in the server's process never read: kernel information on processes, and
/// sockets and secrets of services.
const NEVER_READ: [&str; 3] = ["/proc", "/run", "/var/run"];

/// Folders that the tools of a thread may read and write, held as descriptors.
#[derive(Debug)]
pub struct Roots {
    cwd: PathBuf,
    /// Folders by their given names, and by their real paths. The first is the thread's folder.
    names: Vec<(PathBuf, PathBuf)>,
    top: OwnedFd,
    writable: Vec<Root>,
    /// `None`: everything that is not hidden.
    readable: Option<Vec<PathBuf>>,
    hidden: Vec<(PathBuf, Option<FileId>)>,
    /// Paths that a walk skips.
    closed: Vec<PathPattern>,
    /// Protected names, in folded form.
    protected: Vec<String>,
    /// The user's home, whose dotfiles are protected.
    home: Option<PathBuf>,
    open_mode: OpenMode,
    /// Whether the thread has a sandbox.
    is_confined: bool,
}

/// A path that may be written, with everything below it.
#[derive(Debug)]
struct Root {
    plain: PathBuf,
    /// The path itself, or its folder if it is a file.
    anchor: OwnedFd,
    anchor_path: PathBuf,
    /// Whether protected names in it are enforced.
    is_strict: bool,
    /// Git directories that its `.git` file names.
    git_dirs: Vec<PathBuf>,
}

/// Write access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAccess {
    /// The path is in a writable folder.
    Inside,
    /// The path is outside; the user may approve it.
    Beyond,
    /// The path is in a writable folder, but protected.
    Protected,
}

/// Result of resolving a path.
#[derive(Clone, Debug)]
pub struct ResolvedPath {
    /// Display path: absolute, without `.` and `..`, below the given name of its root.
    pub shown: PathBuf,
    /// Real path: absolute, without `.`, `..` and links.
    pub plain: PathBuf,
    /// Whether the thread may write here.
    pub access: WriteAccess,
    pub(crate) kind: Kind,
    root: Option<usize>,
    is_hidden: bool,
}

impl ResolvedPath {
    /// Whether the path exists.
    pub fn exists(&self) -> bool {
        self.kind != Kind::Missing
    }

    /// Returns the path for approvals and items. A path outside is shown as its real path, since
    /// the user must see it before approving.
    pub(crate) fn name(&self) -> &Path {
        match self.access {
            WriteAccess::Beyond => &self.plain,
            WriteAccess::Inside | WriteAccess::Protected => &self.shown,
        }
    }
}

impl Roots {
    /// Opens the folders of a policy, for paths that are relative to `cwd`. Missing folders are
    /// skipped.
    pub fn new(cwd: &Path, policy: &Policy) -> io::Result<Self> {
        let mut roots = Self {
            cwd: cwd.to_owned(),
            names: vec![(cwd.to_owned(), cwd.to_owned())],
            top: open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?,
            writable: Vec::new(),
            readable: None,
            hidden: Vec::new(),
            closed: Vec::new(),
            protected: Vec::new(),
            home: None,
            open_mode: OpenMode::Kernel,
            is_confined: matches!(policy, Policy::Confined(_)),
        };
        if !cwd.is_absolute() {
            return Err(io::Error::other("the folder of a thread is absolute"));
        }
        if let Ok(followed) = roots.follow(cwd, FinalLink::Follow) {
            roots.names[0].1 = followed.plain;
        }
        match policy {
            Policy::FullAccess => roots.grant(Path::new("/"), false),
            Policy::Confined(rules) => roots.confine(rules),
        }
        Ok(roots)
    }

    /// Disables `openat2` and exchanging renames, as on an older kernel.
    #[must_use]
    pub fn on_an_older_kernel(self) -> Self {
        Self {
            open_mode: OpenMode::Steps,
            ..self
        }
    }

    /// Takes on the rights of a command in the same sandbox, as long as the result is held. Without
    /// a sandbox a command has the rights of the server.
    pub(crate) fn rights(&self) -> io::Result<Option<LoweredRights>> {
        self.is_confined.then(LoweredRights::enter).transpose()
    }

    /// Adds the given names of folders that differ from their real paths.
    #[must_use]
    pub fn named(mut self, real_paths: &BTreeMap<String, String>) -> Self {
        let names = real_paths
            .iter()
            .map(|(name, real)| (name.into(), real.into()));
        self.names.extend(names);
        self
    }

    /// Sets paths that a walk skips.
    #[must_use]
    pub fn without(self, closed: Vec<PathPattern>) -> Self {
        Self { closed, ..self }
    }

    fn confine(&mut self, rules: &SandboxRules) {
        let fold = |name: &OsString| folded(name);
        self.protected = rules.protected.iter().map(fold).collect();
        if !rules.protected.is_empty() {
            let home = raddle_sandbox::home();
            let home = home.and_then(|it| self.follow(&it, FinalLink::Follow).ok());
            self.home = home.map(|it| it.plain);
        }
        for path in &rules.write {
            self.grant(path, true);
        }
        // A rule never means the whole disk.
        self.writable.retain(|it| it.plain.parent().is_some());
        // Another thread may work in the folder that `TMPDIR` names. `/tmp` is shared anyway.
        let (tmp, _) = scratch_folders();
        for path in &rules.scratch {
            self.grant(path, !path.starts_with(tmp));
        }
        if let ReadScope::Listed(paths) = &rules.read {
            // A command may have created a link there. A rule never means the whole disk.
            let real = |it: &PathBuf| {
                let plain = self.follow(it, FinalLink::Follow).ok()?.plain;
                (plain == *it && plain.parent().is_some()).then_some(plain)
            };
            self.readable = Some(paths.iter().filter_map(real).collect());
        }
        let never = NEVER_READ.map(PathBuf::from);
        // Commands get their own `/tmp`, which is not visible here.
        let tmp = (rules.tmp != Tmp::Plain).then(|| PathBuf::from("/tmp"));
        for path in rules.hidden.iter().chain(&never).chain(&tmp) {
            self.hide(path);
        }
    }

    fn hide(&mut self, path: &Path) {
        let followed = self.follow(path, FinalLink::Follow);
        let link = self
            .follow(path, FinalLink::Keep)
            .map(|it| (it.plain, None));
        self.hidden.push(match followed {
            Ok(followed) if followed.kind != Kind::Missing => {
                (followed.plain, followed.ids.last().copied())
            }
            Ok(followed) => (followed.plain, None),
            Err(_) => (path.to_owned(), None),
        });
        // A link to it is protected too.
        self.hidden.extend(link);
    }

    fn grant(&mut self, path: &Path, is_strict: bool) {
        let Ok(followed) = self.follow(path, FinalLink::Follow) else {
            return;
        };
        // A command may have created a link there.
        if followed.plain != path {
            return;
        }
        let anchor_path = match followed.kind {
            Kind::Folder => followed.plain.clone(),
            Kind::File => followed.plain.parent().unwrap_or(Path::new("/")).to_owned(),
            Kind::Missing | Kind::Link | Kind::Special(_) => return,
        };
        let below = anchor_path.strip_prefix("/").unwrap_or(&anchor_path);
        let Ok(anchor) = walk::folder(&self.top, below, self.open_mode) else {
            return;
        };
        let git_dirs = if is_strict {
            self.git_dirs(&followed.plain)
        } else {
            Vec::new()
        };
        self.writable.push(Root {
            plain: followed.plain,
            anchor,
            anchor_path,
            is_strict,
            git_dirs,
        });
    }

    /// Returns the git directories of a worktree. Its `.git` is a file that names the repository,
    /// which may name its common directory.
    fn git_dirs(&self, root: &Path) -> Vec<PathBuf> {
        let git_dir = |file: PathBuf, word: &str, base: &Path| {
            let resolved = self.judge(self.follow(&file, FinalLink::Follow).ok()?);
            let (file, _) = self.open(&resolved).ok()?;
            let path = base.join(raddle_sandbox::gitfile_path(file, word)?);
            Some(self.follow(&path, FinalLink::Follow).ok()?.plain)
        };
        let repository = git_dir(root.join(".git"), "gitdir: ", root);
        let common = repository
            .as_ref()
            .and_then(|it| git_dir(it.join("commondir"), "", it));
        repository.into_iter().chain(common).collect()
    }

    /// Returns the base of relative paths.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the write access to a path.
    pub fn writable(&self, path: &Path) -> Result<WriteAccess, ToolError> {
        let resolved = self.resolve(path, FinalLink::Follow)?;
        Ok(match self.controls_git(&resolved) {
            true => WriteAccess::Protected,
            false => resolved.access,
        })
    }

    /// Whether git reads configuration or code from an otherwise writable path: a repository under
    /// another name than `.git`, or a path that the configuration of the surrounding repository
    /// names. It reads the disk.
    pub(crate) fn controls_git(&self, resolved: &ResolvedPath) -> bool {
        let Some(root) = resolved.root.map(|index| &self.writable[index]) else {
            return false;
        };
        if !root.is_strict || !self.protected.iter().any(|it| it == ".git") {
            return false;
        }
        let folders = resolved.plain.ancestors().skip(1);
        let mut folders =
            folders.take_while(|it| it.starts_with(&root.plain) && **it != root.plain);
        if folders.any(raddle_sandbox::is_git_dir) {
            return true;
        }
        let around = resolved.plain.parent().unwrap_or(&root.plain);
        // A file at the top has only one surrounding folder.
        let folders = BTreeSet::from([around, root.plain.as_path()]);
        let mut control_paths = folders.into_iter().flat_map(git_control_paths);
        control_paths.any(|it| resolved.plain.starts_with(it))
    }

    /// Resolves a path of a model, relative to the thread's folder or absolute. `~` is an ordinary
    /// name.
    pub(crate) fn resolve(&self, path: &Path, last: FinalLink) -> Result<ResolvedPath, ToolError> {
        let invalid = |why| ToolError::Path {
            path: path.to_owned(),
            why,
        };
        if path.as_os_str().is_empty() {
            return Err(invalid("it is empty"));
        }
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(invalid("it has a NUL byte"));
        }
        let absolute = self.cwd.join(path);
        let followed = self.follow(&absolute, last).map_err(|error| match error {
            Errno::LOOP => ToolError::Links(absolute.clone()),
            Errno::NAMETOOLONG => invalid("a name in it is too long"),
            Errno::NOENT => ToolError::Missing(absolute.clone()),
            Errno::NOTDIR => invalid("a file stands where it needs a folder"),
            error => disk(&absolute, error),
        })?;
        Ok(self.judge(followed))
    }

    fn follow(&self, path: &Path, last: FinalLink) -> Result<FollowedPath, Errno> {
        walk::follow(&self.top, path, last)
    }

    fn judge(&self, followed: FollowedPath) -> ResolvedPath {
        let FollowedPath {
            plain, kind, ids, ..
        } = followed;
        let roots = self.writable.iter().enumerate();
        let root = roots
            .filter(|(_, root)| plain.starts_with(&root.plain))
            .max_by_key(|(_, root)| depth(&root.plain));
        let granted = root.map_or(0, |(_, root)| depth(&root.plain));
        let is_hidden = self.hidden.iter().any(|(path, id)| {
            let by_name = plain.starts_with(path) && (root.is_none() || depth(path) >= granted);
            by_name || (!plain.starts_with(path) && id.is_some_and(|it| ids.contains(&it)))
        });
        let access = match root {
            _ if is_hidden => WriteAccess::Protected,
            None if plain.iter().any(|name| self.is_protected_name(name)) => WriteAccess::Protected,
            None => WriteAccess::Beyond,
            Some((_, root)) if self.is_protected(root, &plain) => WriteAccess::Protected,
            Some(_) => WriteAccess::Inside,
        };
        let mut names = self.names.iter();
        let shown = names.find_map(|(name, real)| renamed(&plain, name, real));
        let shown = shown.unwrap_or_else(|| plain.clone());
        let is_listed = self
            .readable
            .as_ref()
            .is_none_or(|listed| root.is_some() || listed.iter().any(|it| plain.starts_with(it)));
        ResolvedPath {
            shown,
            access,
            kind,
            root: root.map(|(index, _)| index),
            is_hidden: is_hidden || !is_listed,
            plain,
        }
    }

    fn is_protected(&self, root: &Root, plain: &Path) -> bool {
        let below = plain.strip_prefix(&root.plain).unwrap_or(plain);
        let is_named = |name: &OsStr| self.is_protected_name(name);
        let is_git_dir = |it: &PathBuf| plain.starts_with(it) && !root.plain.starts_with(it);
        let is_protected = below.iter().any(is_named) || root.git_dirs.iter().any(is_git_dir);
        root.is_strict && is_protected || self.is_dotfile(root, plain)
    }

    /// Whether it is a dotfile of the user's home, or inside one, and no root names it.
    fn is_dotfile(&self, root: &Root, plain: &Path) -> bool {
        let Some(home) = self.home.as_ref().filter(|it| it.starts_with(&root.plain)) else {
            return false;
        };
        let below = plain.strip_prefix(home).ok();
        let first = below.and_then(|it| it.iter().next());
        first.is_some_and(|it| it.as_encoded_bytes().starts_with(b"."))
    }

    fn is_protected_name(&self, name: &OsStr) -> bool {
        self.protected.contains(&folded(name))
    }

    /// Whether a walk skips this path.
    pub(crate) fn is_closed(&self, plain: &Path) -> bool {
        let plain = plain.to_string_lossy();
        self.closed.iter().any(|it| it.fits(&plain))
    }

    /// Rejects a path that must not be read in this thread.
    pub(crate) fn readable(&self, resolved: &ResolvedPath) -> Result<(), ToolError> {
        match resolved.is_hidden {
            true => Err(ToolError::Hidden(resolved.shown.clone())),
            false => Ok(()),
        }
    }

    /// Returns a path for the model: relative if it is in the thread's folder.
    pub(crate) fn brief(&self, shown: &Path) -> String {
        let brief = match shown.strip_prefix(&self.cwd) {
            Ok(rest) if rest.as_os_str().is_empty() => Path::new("."),
            Ok(rest) => rest,
            Err(_) => shown,
        };
        brief.to_string_lossy().into_owned()
    }

    /// Returns the parent folder and the file name.
    pub(crate) fn around<'a>(
        &self,
        resolved: &'a ResolvedPath,
    ) -> Result<(OwnedFd, &'a OsStr), ToolError> {
        let name = resolved.plain.file_name();
        let name = name.ok_or_else(|| ToolError::Folder(resolved.shown.clone()))?;
        let folder = self.folder(resolved, resolved.plain.parent().unwrap_or(Path::new("/")));
        Ok((folder.map_err(|it| disk(&resolved.shown, it))?, name))
    }

    /// Opens a folder on the path, by its real path, below the path's root.
    pub(crate) fn folder(&self, resolved: &ResolvedPath, path: &Path) -> Result<OwnedFd, Errno> {
        let (anchor, below) = match resolved.root.map(|index| &self.writable[index]) {
            Some(root) => (&root.anchor, path.strip_prefix(&root.anchor_path)),
            None => (&self.top, path.strip_prefix("/")),
        };
        walk::folder(anchor, below.map_err(|_| Errno::XDEV)?, self.open_mode)
    }

    pub(crate) fn open_mode(&self) -> OpenMode {
        self.open_mode
    }

    /// Opens a regular file that may be read.
    pub(crate) fn open(&self, resolved: &ResolvedPath) -> Result<(File, Stat), ToolError> {
        self.readable(resolved)?;
        refuse_unless_file(resolved.kind, &resolved.shown)?;
        let (folder, name) = self.around(resolved)?;
        let opened = open_file(&folder, name, &resolved.shown)?;
        opened.ok_or_else(|| ToolError::Missing(resolved.shown.clone()))
    }

    /// Reads a whole file that may be read.
    pub(crate) fn read(&self, resolved: &ResolvedPath) -> Result<Contents, ToolError> {
        let (file, stat) = self.open(resolved)?;
        contents(file, &stat, &resolved.shown)
    }
}

/// Replaces the real path of a folder by its given name. `None` if the path is not in the folder,
/// or the name contains `..`.
fn renamed(plain: &Path, name: &Path, real: &Path) -> Option<PathBuf> {
    let below = plain.strip_prefix(real).ok()?;
    let is_roundabout = name.components().any(|it| it == Component::ParentDir);
    match below.as_os_str().is_empty() {
        _ if is_roundabout => None,
        true => Some(name.components().collect()),
        false => Some(name.components().collect::<PathBuf>().join(below)),
    }
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

/// Folds a name as case-insensitive file systems do, without the invisible characters that some
/// ignore.
fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy().to_uppercase().to_lowercase();
    let is_ignored = |it: &char| matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    name.chars().filter(|it| !is_ignored(it)).collect()
}
