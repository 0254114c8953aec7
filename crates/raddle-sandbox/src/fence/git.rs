//! Files that git obeys in a writable folder, besides the `.git` at its top: repositories below it, submodules
//! that an index names, and paths that a configuration names.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::git_config::{self, NamedPath, Setting, Use};
use super::notice::Notice;
use super::points::is_placeholder;
use super::repositories::{RepositoryCache, can_be_entered};
use super::survey::Seen;
use super::way::Way;

/// Bytes read of a `.git` file that names a repository.
const GITDIR_BYTES_MAX: u64 = 4_096;
/// What is read of one file of settings, how many files there may be, and how deep one may include another, as git.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
const CONFIGS_MAX: usize = 64;
const INCLUDES_MAX: usize = 10;

/// How many mounts protect single paths. Bubblewrap takes nine thousand words, a mount is up to five of them, and
/// the time that it takes grows with their square.
const MOUNTS_MAX: usize = 300;
/// How many more folders are mounted whole when those are used up.
const WHOLE_MAX: usize = 200;

/// How many notices one fence brings.
const NOTICES_MAX: usize = 100;

/// The mounts that are left for one fence.
#[derive(Debug)]
pub(super) struct MountBudget {
    single: usize,
    whole: usize,
}

impl Default for MountBudget {
    fn default() -> Self {
        Self {
            single: MOUNTS_MAX,
            whole: WHOLE_MAX,
        }
    }
}

/// A repository with a work tree.
#[derive(Debug)]
struct Repository {
    /// The top of its work tree.
    folder: PathBuf,
    git_dir: PathBuf,
    /// What it shares with other work trees; often the same.
    common: PathBuf,
}

/// Whether a command may have made what names something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// No command could: a name at the top of a root, or a submodule of an index.
    User,
    /// A command could have.
    Anyone,
}

impl Repository {
    /// The repository whose work tree has its top here.
    fn at(folder: &Path) -> Option<Self> {
        let dot_git = folder.join(".git");
        let git_dir = match fs::metadata(&dot_git).ok()?.is_dir() {
            true => dot_git,
            false => named_in(&dot_git, "gitdir: ", folder)?,
        };
        if fs::symlink_metadata(git_dir.join("HEAD")).is_err() {
            return None;
        }
        let common = named_in(&git_dir.join("commondir"), "", &git_dir);
        Some(Self {
            folder: folder.to_owned(),
            common: common.unwrap_or_else(|| git_dir.clone()),
            git_dir,
        })
    }

    /// The repository whose work tree this folder is in.
    fn around(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }
}

/// The settings that apply to a repository, each with the folder of its file.
struct Settings {
    all: Vec<(PathBuf, Setting)>,
    files: usize,
}

impl Settings {
    /// Those of the machine and of the user.
    fn shared(home: Option<&Path>) -> Self {
        let mut settings = Self {
            all: Vec::new(),
            files: 0,
        };
        settings.read(Path::new("/etc/gitconfig"), home, 0);
        if let Some(home) = home {
            let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let xdg = xdg.filter(|it| it.is_absolute());
            let xdg = xdg.unwrap_or_else(|| home.join(".config"));
            settings.read(&xdg.join("git/config"), Some(home), 0);
            settings.read(&home.join(".gitconfig"), Some(home), 0);
        }
        settings
    }

    /// Those of one repository.
    fn of(repository: &Repository, home: Option<&Path>) -> Self {
        let mut settings = Self {
            all: Vec::new(),
            files: 0,
        };
        settings.read(&repository.common.join("config"), home, 0);
        settings.read(&repository.git_dir.join("config.worktree"), home, 0);
        settings
    }

    /// Reads a file and what it includes, whatever the condition.
    fn read(&mut self, file: &Path, home: Option<&Path>, depth: usize) {
        if self.files == CONFIGS_MAX || depth > INCLUDES_MAX {
            return;
        }
        let Ok(text) = read_at_most(file, CONFIG_BYTES_MAX) else {
            return;
        };
        self.files += 1;
        let folder = file.parent().unwrap_or(Path::new("/"));
        let settings = git_config::parse(&text);
        for named in git_config::named_paths(&settings) {
            if named.use_ == Use::Include
                && let Some(path) = git_config::expand(&named.path, home)
            {
                self.read(&folder.join(path), home, depth + 1);
            }
        }
        let settings = settings.into_iter();
        self.all.extend(settings.map(|it| (folder.to_owned(), it)));
    }

    fn oid_bytes(&self) -> usize {
        let is_long = |it: &Setting| {
            it.is("extensions", "objectformat") && it.value.as_deref() == Some(b"sha256")
        };
        match self.all.iter().any(|(_, it)| is_long(it)) {
            true => 32,
            false => 20,
        }
    }

    /// Absolute paths that git obeys in the work tree with this top.
    fn paths(&self, top: &Path, home: Option<&Path>) -> Vec<(PathBuf, NamedPath)> {
        let mut paths = Vec::new();
        for (folder, setting) in &self.all {
            for named in git_config::named_paths(std::slice::from_ref(setting)) {
                let base = match named.use_ {
                    Use::Include => folder,
                    Use::Folder | Use::Program => top,
                };
                if let Some(path) = git_config::expand(&named.path, home) {
                    paths.push((base.join(path), named));
                }
            }
        }
        paths
    }
}

/// Existing paths that git obeys, besides `.git`, in the repository that a folder is in: hooks, included settings and
/// programs that its configuration names. They are absolute and without links; most lie outside of the folder.
pub fn obeyed_paths(folder: &Path) -> Vec<PathBuf> {
    let home = home();
    let home = home.as_deref();
    let Some(repository) = Repository::around(folder) else {
        return Vec::new();
    };
    let mut paths = Settings::shared(home).paths(&repository.folder, home);
    paths.extend(Settings::of(&repository, home).paths(&repository.folder, home));
    let real = |(path, named): (PathBuf, NamedPath)| {
        let real = Way::of(&path).ok()?;
        let is_meant = match named.use_ {
            Use::Program => real.real.is_file(),
            Use::Folder | Use::Include => true,
        };
        is_meant.then_some(real.real)
    };
    let mut real: Vec<PathBuf> = paths.into_iter().filter_map(real).collect();
    // To protect a folder that the repository is in would leave nothing to work in.
    real.retain(|it| !repository.folder.starts_with(it));
    real.sort();
    real.dedup();
    real
}

/// Whether a folder is one that git would take for a repository without a work tree.
pub fn is_git_dir(folder: &Path) -> bool {
    let has = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// The home of the user that the server runs as.
pub fn home() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.filter(|it| it.is_absolute())
}

impl Seen {
    /// Protects what git obeys below `root`, and says what cannot be protected.
    pub(super) fn protect_git(&mut self, root: &Path, cache: &RepositoryCache) {
        let home = self.home.clone();
        let home = home.as_deref();
        let shared = Settings::shared(home);
        let found = cache.find(root);
        if found.is_cut {
            self.notices.push(Notice::Walk(root.to_owned()));
        }
        // First what the user's own repository names, which no flood of others must displace.
        let mut wanted = Vec::new();
        if let Some(own) = Repository::around(root) {
            self.obeyed(root, &own, &shared, home, cache, &mut wanted);
        }
        for folder in &found.closed {
            // Nothing could be mounted in a root that cannot be entered.
            if folder != root {
                self.notices.push(Notice::Closed(folder.clone()));
                wanted.push(folder.clone());
            }
        }
        for folder in &found.repositories {
            if wanted.len() > 2 * MOUNTS_MAX {
                // Only the folder at the top counts any more.
                wanted.push(folder.join(".git"));
                continue;
            }
            self.protect_nested(root, folder, Maker::Anyone, &mut wanted);
            if wanted.len() <= MOUNTS_MAX
                && let Some(repository) = Repository::at(folder)
            {
                self.obeyed(root, &repository, &shared, home, cache, &mut wanted);
            }
        }
        self.spend(root, wanted);
        self.notices.truncate(NOTICES_MAX);
    }

    /// Adds what a repository names: its submodules, and the paths of its configuration.
    fn obeyed(
        &mut self,
        root: &Path,
        repository: &Repository,
        shared: &Settings,
        home: Option<&Path>,
        cache: &RepositoryCache,
        wanted: &mut Vec<PathBuf>,
    ) {
        let own = Settings::of(repository, home);
        let gitlinks = cache.gitlinks(&repository.git_dir, own.oid_bytes());
        for below in gitlinks.iter() {
            let path = repository.folder.join(below);
            if path.starts_with(root) && path != root {
                self.protect_gitlink(root, &path, wanted);
            }
        }
        let mut paths = shared.paths(&repository.folder, home);
        paths.extend(own.paths(&repository.folder, home));
        for (path, named) in paths {
            self.protect_named(&path, &named, wanted);
        }
    }

    /// The `.git` in a folder below a root.
    fn protect_nested(
        &mut self,
        root: &Path,
        folder: &Path,
        maker: Maker,
        wanted: &mut Vec<PathBuf>,
    ) {
        let dot_git = folder.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Ok(found) if found.is_symlink() => {
                self.notices.push(Notice::Link(dot_git.clone()));
                wanted.push(folder.to_owned());
                let target = fs::canonicalize(&dot_git).ok();
                wanted.extend(target.filter(|it| self.is_kept(it, root)));
            }
            Ok(_) => {
                self.protect_gitdir(root, folder, maker, wanted);
                wanted.push(dot_git);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                wanted.extend(closed_above(root, folder));
            }
            // It has gone.
            Err(_) => {}
        }
    }

    /// What a `.git` that is a file names. Of those that a command may have made, only what is a repository already.
    fn protect_gitdir(
        &mut self,
        root: &Path,
        folder: &Path,
        maker: Maker,
        wanted: &mut Vec<PathBuf>,
    ) {
        let Some(git_dir) = named_in(&folder.join(".git"), "gitdir: ", folder) else {
            return;
        };
        let common = named_in(&git_dir.join("commondir"), "", &git_dir);
        for path in [Some(git_dir), common].into_iter().flatten() {
            match fs::canonicalize(&path) {
                Ok(real) if self.is_kept(&real, root) => {
                    if maker == Maker::User || is_git_dir(&real) {
                        wanted.push(real);
                    }
                }
                Ok(_) => {}
                Err(_) if maker == Maker::User => self.take_missing(root, &path, wanted),
                Err(_) => {}
            }
        }
    }

    /// A submodule, whether or not it was checked out: git looks into it from the repository around it.
    fn protect_gitlink(&mut self, root: &Path, path: &Path, wanted: &mut Vec<PathBuf>) {
        let Ok(below) = path.strip_prefix(root) else {
            return;
        };
        let mut at = root.to_owned();
        for name in below {
            at.push(name);
            match fs::symlink_metadata(&at) {
                Ok(found) if is_placeholder(&found) => return self.take_missing(root, &at, wanted),
                Ok(found) if found.is_symlink() => return self.protect_link(root, &at, wanted),
                Ok(found) if !found.is_dir() => return wanted.push(at),
                Ok(_) if !can_be_entered(&at) => return,
                Ok(_) => {}
                Err(_) => return self.take_missing(root, &at, wanted),
            }
        }
        if fs::symlink_metadata(at.join(".git")).is_ok() {
            return self.protect_nested(root, &at, Maker::User, wanted);
        }
        let is_empty = fs::read_dir(&at).is_ok_and(|mut it| it.next().is_none());
        match is_empty {
            // Without a trace on the disk.
            true => wanted.push(at),
            false => self.take_missing(root, &at.join(".git"), wanted),
        }
    }

    /// A link that git would find something else in place of: it stays if the folder around it does.
    fn protect_link(&mut self, root: &Path, link: &Path, wanted: &mut Vec<PathBuf>) {
        match link
            .parent()
            .filter(|it| *it != root && self.is_kept(it, root))
        {
            Some(folder) => {
                self.notices.push(Notice::Link(link.to_owned()));
                wanted.push(folder.to_owned());
            }
            None => self.notices.push(Notice::Open {
                path: link.to_owned(),
                because: "it is a link where the index has a submodule".to_owned(),
            }),
        }
    }

    /// What a setting names.
    fn protect_named(&mut self, path: &Path, named: &NamedPath, wanted: &mut Vec<PathBuf>) {
        let Ok(way) = Way::of(path) else {
            return;
        };
        // Also those that lead outside.
        self.notice_links(&way, named);
        let Some(root) = self.root_of(&way.real) else {
            return;
        };
        if self.is_covered(&way.real, wanted) {
            return;
        }
        let found = fs::symlink_metadata(&way.real).ok();
        let found = found.filter(|it| !is_placeholder(it));
        match named.use_ {
            // A word of a command need not be a path.
            Use::Program if !found.as_ref().is_some_and(fs::Metadata::is_file) => {}
            _ if self.write.iter().any(|it| it.starts_with(&way.real)) => {
                self.notices.push(Notice::Open {
                    path: way.real,
                    because: format!("`{}` of git names it", named.key),
                });
            }
            _ if found.is_some() => wanted.push(way.real),
            Use::Folder => self.take_missing(&root, &way.real, wanted),
            // An empty folder in its place would stop git.
            Use::Include | Use::Program => match self.points.take_file(&way.real) {
                Ok(true) => wanted.push(way.real),
                Ok(false) => {}
                Err(_) => self.notices.push(Notice::Open {
                    path: way.real,
                    because: format!("`{}` of git names it", named.key),
                }),
            },
        }
    }

    /// Links on the way that a command could exchange.
    fn notice_links(&mut self, way: &Way, named: &NamedPath) {
        let links = way.links.iter().filter(|it| self.root_of(it).is_some());
        let notices = links.map(|link| Notice::Open {
            path: link.clone(),
            because: format!("`{}` of git leads through it", named.key),
        });
        let notices: Vec<Notice> = notices.collect();
        self.notices.extend(notices);
    }

    /// Takes the first name of a path that is missing, so that no command makes it.
    fn take_missing(&mut self, root: &Path, path: &Path, wanted: &mut Vec<PathBuf>) {
        let Ok(way) = Way::of(path) else {
            return;
        };
        if !self.is_kept(&way.real, root) || self.is_covered(&way.real, wanted) {
            return;
        }
        let is_missing =
            |it: &&Path| fs::symlink_metadata(it).map_or(true, |it| is_placeholder(&it));
        let missing = way.real.ancestors().take_while(is_missing).last();
        let Some(missing) = missing else {
            return;
        };
        match self.points.take(missing) {
            Ok(true) => wanted.push(missing.to_owned()),
            Ok(false) => {}
            Err(_) => self.notices.push(Notice::Open {
                path: missing.to_owned(),
                because: "git looks for a repository there".to_owned(),
            }),
        }
    }

    /// Whether it is protected with something around it, such as a `.git`.
    fn is_covered(&self, path: &Path, wanted: &[PathBuf]) -> bool {
        let mut kept = self.protected.iter().chain(wanted);
        kept.any(|it| path.starts_with(it) && path != it)
    }

    /// The writable root that a path lies in.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let around = self.write.iter().filter(|root| path.starts_with(root));
        let root = around.max_by_key(|it| it.components().count())?;
        (!self.is_out_of_sight(path)).then(|| root.clone())
    }

    /// Whether a path lies in something writable, and is not what must stay writable itself.
    fn is_kept(&self, path: &Path, root: &Path) -> bool {
        !root.starts_with(path) && self.root_of(path).is_some()
    }

    /// Whether it lies in what is hidden: to mount it would bring it to light.
    fn is_out_of_sight(&self, path: &Path) -> bool {
        self.hidden.iter().any(|(hidden, _)| {
            let is_open = |it: &PathBuf| it.starts_with(hidden) && path.starts_with(it);
            path.starts_with(hidden) && !self.write.iter().any(is_open)
        })
    }

    /// Protects paths one by one while there are mounts left, then the folders at the top of the root that the others
    /// are in, and in the end the root.
    fn spend(&mut self, root: &Path, wanted: Vec<PathBuf>) {
        let mut mounted: BTreeSet<PathBuf> = BTreeSet::new();
        let mut whole: BTreeSet<PathBuf> = BTreeSet::new();
        for path in wanted {
            if mounted.contains(&path) && self.protected.contains(&path)
                || self.is_out_of_sight(&path)
            {
                continue;
            }
            // Every folder on the way is mounted on itself.
            let way = path
                .ancestors()
                .take_while(|it| it.starts_with(root) && *it != root);
            let new: Vec<PathBuf> = way
                .filter(|it| !mounted.contains(*it))
                .map(Path::to_owned)
                .collect();
            if new.len() <= self.budget.single {
                self.budget.single -= new.len();
                mounted.extend(new);
                self.protected.push(path);
            } else if let Some(top) = path.strip_prefix(root).ok().and_then(|it| it.iter().next()) {
                whole.insert(root.join(top));
            }
        }
        if whole.len() > self.budget.whole {
            self.notices.push(Notice::Many(root.to_owned()));
            self.whole_roots.push(root.to_owned());
            return;
        }
        self.budget.whole -= whole.len();
        for folder in whole {
            self.notices.push(Notice::Many(folder.clone()));
            self.protected.push(folder);
        }
    }
}

/// The first folder on the way that cannot be entered.
fn closed_above(root: &Path, folder: &Path) -> Option<PathBuf> {
    let below = folder.strip_prefix(root).ok()?;
    let mut at = root.to_owned();
    for name in below {
        at.push(name);
        if !can_be_entered(&at) {
            return Some(at);
        }
    }
    None
}

/// The path that a small file names, after a word; relative to a folder.
pub(super) fn named_in(file: &Path, word: &str, folder: &Path) -> Option<PathBuf> {
    if !fs::symlink_metadata(file).ok()?.is_file() {
        return None;
    }
    let bytes = read_at_most(file, GITDIR_BYTES_MAX).ok()?;
    let path = bytes.strip_prefix(word.as_bytes())?;
    let end = path.iter().rposition(|it| !matches!(it, b'\n' | b'\r'))?;
    Some(folder.join(OsStr::from_bytes(&path[..=end])))
}

/// An ordinary file only: a pipe would be waited for.
fn read_at_most(file: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    fs::File::open(file)?
        .take(bytes_max)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
