//! The folders that the tools of a thread may read and write.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use raddle_core::policy::PathPattern;
use raddle_sandbox::{LoweredRights, Policy, ReadScope, SandboxRules, Tmp, scratch_folders};
use rustix::fs::{Mode, OFlags, Stat, open};
use rustix::io::Errno;

use super::change::Contents;
use super::error::ToolError;
use super::open::{contents, disk, open_file, refuse_unless_file};
use super::walk::{self, FileId, FinalLink, FollowedPath, Kind, OpenMode};

/// What is never read by a tool that runs in our own process: what the kernel says of processes, and where
/// sockets and secrets of services are.
const NEVER_READ: [&str; 3] = ["/proc", "/run", "/var/run"];

/// The folders that the tools of a thread may read and write, as descriptors.
#[derive(Debug)]
pub struct Roots {
    cwd: PathBuf,
    /// Folders by the names that people know them by, and by their real paths. The first is the thread's.
    names: Vec<(PathBuf, PathBuf)>,
    top: OwnedFd,
    writable: Vec<Root>,
    /// None: everything that is not hidden.
    readable: Option<Vec<PathBuf>>,
    hidden: Vec<(PathBuf, Option<FileId>)>,
    /// What a walk leaves out.
    closed: Vec<PathPattern>,
    /// Folded.
    protected: Vec<String>,
    /// The user's home, whose dotfiles stay as they are.
    home: Option<PathBuf>,
    open_mode: OpenMode,
    /// Whether there is a sandbox at all.
    is_confined: bool,
}

/// A path that may be written, with all that is in it.
#[derive(Debug)]
struct Root {
    plain: PathBuf,
    /// It, or the folder around it if it is a file.
    anchor: OwnedFd,
    anchor_path: PathBuf,
    /// Whether names in it are protected.
    is_strict: bool,
    /// What git keeps elsewhere in it.
    apart: Vec<PathBuf>,
}

/// Whether a path may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAccess {
    /// It lies in what may be written.
    Inside,
    /// It does not; someone may allow it.
    Beyond,
    /// It lies there, but stays as it is.
    Protected,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub struct ResolvedPath {
    /// As it is shown: absolute, without `.` and `..`, below the name that its root was given by.
    pub shown: PathBuf,
    /// Absolute, without `.`, `..` and links.
    pub plain: PathBuf,
    /// Whether it may be written.
    pub access: WriteAccess,
    pub(crate) kind: Kind,
    root: Option<usize>,
    is_hidden: bool,
}

impl ResolvedPath {
    /// Whether anything is there.
    pub fn exists(&self) -> bool {
        self.kind != Kind::Missing
    }

    /// How people are told of it. What is beyond is named by where it is: whoever is asked about it must see that.
    pub(crate) fn name(&self) -> &Path {
        match self.access {
            WriteAccess::Beyond => &self.plain,
            WriteAccess::Inside | WriteAccess::Protected => &self.shown,
        }
    }
}

impl Roots {
    /// The folders that a policy gives, for paths that are relative to `cwd`. What does not exist gives
    /// nothing.
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
        if let Ok(found) = roots.follow(cwd, FinalLink::Follow) {
            roots.names[0].1 = found.plain;
        }
        match policy {
            Policy::FullAccess => roots.grant(Path::new("/"), false),
            Policy::Confined(rules) => roots.confine(rules),
        }
        Ok(roots)
    }

    /// The same for a kernel without `openat2` and without renames that exchange.
    #[must_use]
    pub fn on_an_older_kernel(self) -> Self {
        Self {
            open_mode: OpenMode::Steps,
            ..self
        }
    }

    /// The rights of a command in the same sandbox, for as long as this is held. Without a sandbox a command has those
    /// of the server.
    pub(crate) fn rights(&self) -> io::Result<Option<LoweredRights>> {
        self.is_confined.then(LoweredRights::enter).transpose()
    }

    /// The same, with folders that people know by other names than their real paths.
    #[must_use]
    pub fn named(mut self, real_paths: &BTreeMap<String, String>) -> Self {
        let names = real_paths
            .iter()
            .map(|(given, real)| (given.into(), real.into()));
        self.names.extend(names);
        self
    }

    /// The same, with paths that a walk leaves out.
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
        // The whole disk is nothing that a rule means.
        self.writable.retain(|it| it.plain.parent().is_some());
        // Another thread may work in the folder that `TMPDIR` names. `/tmp` is everybody's.
        let (tmp, _) = scratch_folders();
        for path in &rules.scratch {
            self.grant(path, !path.starts_with(tmp));
        }
        if let ReadScope::Listed(paths) = &rules.read {
            let plain = |it: &PathBuf| Some(self.follow(it, FinalLink::Follow).ok()?.plain);
            self.readable = Some(paths.iter().filter_map(plain).collect());
        }
        let never = NEVER_READ.map(PathBuf::from);
        // Commands have another one, which is not in sight here.
        let tmp = (rules.tmp != Tmp::Plain).then(|| PathBuf::from("/tmp"));
        for path in rules.hidden.iter().chain(&never).chain(&tmp) {
            self.hide(path);
        }
    }

    fn hide(&mut self, path: &Path) {
        let found = self.follow(path, FinalLink::Follow);
        let link = self
            .follow(path, FinalLink::Keep)
            .map(|it| (it.plain, None));
        self.hidden.push(match found {
            Ok(found) if found.kind != Kind::Missing => (found.plain, found.ids.last().copied()),
            Ok(found) => (found.plain, None),
            Err(_) => (path.to_owned(), None),
        });
        // A link to it stays as it is too.
        self.hidden.extend(link);
    }

    fn grant(&mut self, given: &Path, is_strict: bool) {
        let Ok(found) = self.follow(given, FinalLink::Follow) else {
            return;
        };
        // A command may have put a link there.
        if found.plain != given {
            return;
        }
        let anchor_path = match found.kind {
            Kind::Folder => found.plain.clone(),
            Kind::File => found.plain.parent().unwrap_or(Path::new("/")).to_owned(),
            Kind::Missing | Kind::Link | Kind::Special(_) => return,
        };
        let below = anchor_path.strip_prefix("/").unwrap_or(&anchor_path);
        let Ok(anchor) = walk::folder(&self.top, below, self.open_mode) else {
            return;
        };
        let apart = if is_strict {
            self.kept_apart(&found.plain)
        } else {
            Vec::new()
        };
        self.writable.push(Root {
            plain: found.plain,
            anchor,
            anchor_path,
            is_strict,
            apart,
        });
    }

    /// The `.git` of a worktree is a file that says where the repository is, which may say where its common
    /// part is.
    fn kept_apart(&self, root: &Path) -> Vec<PathBuf> {
        let named = |file: PathBuf, word: &str, base: &Path| {
            let spot = self.judge(self.follow(&file, FinalLink::Follow).ok()?);
            let (file, _) = self.open(&spot).ok()?;
            let path = base.join(raddle_sandbox::gitfile_path(file, word)?);
            Some(self.follow(&path, FinalLink::Follow).ok()?.plain)
        };
        let repository = named(root.join(".git"), "gitdir: ", root);
        let common = repository
            .as_ref()
            .and_then(|it| named(it.join("commondir"), "", it));
        repository.into_iter().chain(common).collect()
    }

    /// Where paths of a model begin.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Whether a path may be written.
    pub fn writable(&self, path: &Path) -> Result<WriteAccess, ToolError> {
        let spot = self.resolve(path, FinalLink::Follow)?;
        Ok(match self.is_obeyed(&spot) {
            true => WriteAccess::Protected,
            false => spot.access,
        })
    }

    /// Whether git takes orders from a path that may be written otherwise: a repository by another name than `.git`,
    /// or what the configuration of the repository around it names. It looks at the disk.
    pub(crate) fn is_obeyed(&self, spot: &ResolvedPath) -> bool {
        let Some(root) = spot.root.map(|index| &self.writable[index]) else {
            return false;
        };
        if !root.is_strict || !self.protected.iter().any(|it| it == ".git") {
            return false;
        }
        let folders = spot.plain.ancestors().skip(1);
        let mut folders =
            folders.take_while(|it| it.starts_with(&root.plain) && **it != root.plain);
        if folders.any(raddle_sandbox::is_git_dir) {
            return true;
        }
        let around = spot.plain.parent().unwrap_or(&root.plain);
        // A file at the top has one folder around it.
        let folders = BTreeSet::from([around, root.plain.as_path()]);
        let mut obeyed = folders.into_iter().flat_map(raddle_sandbox::obeyed_paths);
        obeyed.any(|it| spot.plain.starts_with(it))
    }

    /// Where a path of a model leads: relative to the thread's folder or absolute. `~` is a name like any other.
    pub(crate) fn resolve(&self, path: &Path, last: FinalLink) -> Result<ResolvedPath, ToolError> {
        let bad = |why| ToolError::Path {
            path: path.to_owned(),
            why,
        };
        if path.as_os_str().is_empty() {
            return Err(bad("it is empty"));
        }
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(bad("it has a NUL byte"));
        }
        let asked = self.cwd.join(path);
        let found = self.follow(&asked, last).map_err(|error| match error {
            Errno::LOOP => ToolError::Links(asked.clone()),
            Errno::NAMETOOLONG => bad("a name in it is too long"),
            Errno::NOENT => ToolError::Missing(asked.clone()),
            Errno::NOTDIR => bad("a file stands where it needs a folder"),
            error => disk(&asked, error),
        })?;
        Ok(self.judge(found))
    }

    fn follow(&self, path: &Path, last: FinalLink) -> Result<FollowedPath, Errno> {
        walk::follow(&self.top, path, last)
    }

    fn judge(&self, found: FollowedPath) -> ResolvedPath {
        let FollowedPath {
            plain, kind, ids, ..
        } = found;
        let roots = self.writable.iter().enumerate();
        let root = roots
            .filter(|(_, root)| plain.starts_with(&root.plain))
            .max_by_key(|(_, root)| depth(&root.plain));
        let granted = root.map_or(0, |(_, root)| depth(&root.plain));
        let is_hidden = self.hidden.iter().any(|(path, id)| {
            let by_name = plain.starts_with(path) && (root.is_none() || depth(path) >= granted);
            by_name || (!plain.starts_with(path) && id.is_some_and(|it| ids.contains(&it)))
        });
        let place = match root {
            _ if is_hidden => WriteAccess::Protected,
            None if plain.iter().any(|name| self.is_protected_name(name)) => WriteAccess::Protected,
            None => WriteAccess::Beyond,
            Some((_, root)) if self.is_protected(root, &plain) => WriteAccess::Protected,
            Some(_) => WriteAccess::Inside,
        };
        let mut names = self.names.iter();
        let shown = names.find_map(|(given, real)| renamed(&plain, given, real));
        let shown = shown.unwrap_or_else(|| plain.clone());
        let is_listed = self
            .readable
            .as_ref()
            .is_none_or(|listed| root.is_some() || listed.iter().any(|it| plain.starts_with(it)));
        ResolvedPath {
            shown,
            access: place,
            kind,
            root: root.map(|(index, _)| index),
            is_hidden: is_hidden || !is_listed,
            plain,
        }
    }

    fn is_protected(&self, root: &Root, plain: &Path) -> bool {
        let below = plain.strip_prefix(&root.plain).unwrap_or(plain);
        let is_named = |name: &OsStr| self.is_protected_name(name);
        let is_apart = |it: &PathBuf| plain.starts_with(it) && !root.plain.starts_with(it);
        let is_obeyed = below.iter().any(is_named) || root.apart.iter().any(is_apart);
        root.is_strict && is_obeyed || self.is_dotfile(root, plain)
    }

    /// Whether it is a dotfile of the user's home, or in one, and no root names it.
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

    /// Whether a walk leaves this plain path out.
    pub(crate) fn is_closed(&self, plain: &Path) -> bool {
        let plain = plain.to_string_lossy();
        self.closed.iter().any(|it| it.fits(&plain))
    }

    /// Refuses what may not be read in this thread.
    pub(crate) fn readable(&self, spot: &ResolvedPath) -> Result<(), ToolError> {
        match spot.is_hidden {
            true => Err(ToolError::Hidden(spot.shown.clone())),
            false => Ok(()),
        }
    }

    /// A path as it is written for the model: relative if it is in the thread's folder.
    pub(crate) fn brief(&self, shown: &Path) -> String {
        let brief = match shown.strip_prefix(&self.cwd) {
            Ok(rest) if rest.as_os_str().is_empty() => Path::new("."),
            Ok(rest) => rest,
            Err(_) => shown,
        };
        brief.to_string_lossy().into_owned()
    }

    /// The folder around a spot, and its name there.
    pub(crate) fn around<'a>(
        &self,
        spot: &'a ResolvedPath,
    ) -> Result<(OwnedFd, &'a OsStr), ToolError> {
        let name = spot.plain.file_name();
        let name = name.ok_or_else(|| ToolError::Folder(spot.shown.clone()))?;
        let folder = self.folder(spot, spot.plain.parent().unwrap_or(Path::new("/")));
        Ok((folder.map_err(|it| disk(&spot.shown, it))?, name))
    }

    /// Opens a folder on the way to a spot, by its plain path, below the spot's root.
    pub(crate) fn folder(&self, spot: &ResolvedPath, path: &Path) -> Result<OwnedFd, Errno> {
        let (anchor, below) = match spot.root.map(|index| &self.writable[index]) {
            Some(root) => (&root.anchor, path.strip_prefix(&root.anchor_path)),
            None => (&self.top, path.strip_prefix("/")),
        };
        walk::folder(anchor, below.map_err(|_| Errno::XDEV)?, self.open_mode)
    }

    pub(crate) fn open_mode(&self) -> OpenMode {
        self.open_mode
    }

    /// Opens an ordinary file that may be read.
    pub(crate) fn open(&self, spot: &ResolvedPath) -> Result<(File, Stat), ToolError> {
        self.readable(spot)?;
        refuse_unless_file(spot.kind, &spot.shown)?;
        let (folder, name) = self.around(spot)?;
        let opened = open_file(&folder, name, &spot.shown)?;
        opened.ok_or_else(|| ToolError::Missing(spot.shown.clone()))
    }

    /// All of a file that may be read.
    pub(crate) fn read(&self, spot: &ResolvedPath) -> Result<Contents, ToolError> {
        let (file, stat) = self.open(spot)?;
        contents(file, &stat, &spot.shown)
    }
}

/// A plain path as it is called below a folder with two names; nothing if it is not there, or if the name
/// is no plain one itself.
fn renamed(plain: &Path, given: &Path, real: &Path) -> Option<PathBuf> {
    let below = plain.strip_prefix(real).ok()?;
    let is_roundabout = given.components().any(|it| it == Component::ParentDir);
    match below.as_os_str().is_empty() {
        _ if is_roundabout => None,
        true => Some(given.components().collect()),
        false => Some(given.components().collect::<PathBuf>().join(below)),
    }
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

/// A name as file systems that do not tell letter case apart see it, without marks that some leave out.
fn folded(name: &OsStr) -> String {
    let name = name.to_string_lossy().to_uppercase().to_lowercase();
    let is_ignored = |it: &char| matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    name.chars().filter(|it| !is_ignored(it)).collect()
}
