//! Files that git obeys in a writable folder, besides the `.git` at its top: repositories below it, submodules
//! that an index names, and paths that a configuration names.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::git_config::{NamedPath, PathUse};
use super::git_settings::{GitSettings, Repository, named_in};
use super::notice::Notice;
use super::placeholders::is_placeholder;
use super::policy_path::PolicyPath;
use super::repositories::{RepositoryCache, can_be_entered};
use super::survey::RuleSet;

/// How many mounts protect single paths. Bubblewrap takes nine thousand words, a mount is up to five of them, and
/// the time that it takes grows with their square.
const MOUNTS_MAX: usize = 300;
/// How many more folders are mounted whole when those are used up.
const WHOLE_MAX: usize = 200;

/// How many missing names are taken for what git obeys. Each is on the disk, and a descriptor or two of the server,
/// for as long as a command runs.
const PLACEHOLDERS_MAX: usize = 128;
/// Cost of comparing two paths, in bytes of the budget.
const COMPARED_BYTES: usize = 4;

/// How many notices one fence brings.
const NOTICES_MAX: usize = 100;

/// The mounts that are left for one fence, and the names that may still be taken.
#[derive(Debug)]
pub(super) struct MountBudget {
    single: usize,
    whole: usize,
    placeholders: usize,
}

impl Default for MountBudget {
    fn default() -> Self {
        Self {
            single: MOUNTS_MAX,
            whole: WHOLE_MAX,
            placeholders: PLACEHOLDERS_MAX,
        }
    }
}

/// Whether a command may have made what names something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Provenance {
    /// No command could: a name at the top of a root, or a submodule of an index.
    User,
    /// A command could have.
    Anyone,
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

/// Whether a folder is the user's home, or around it.
pub fn is_around_home(folder: &Path) -> bool {
    home().is_some_and(|home| home.starts_with(folder))
}

impl RuleSet {
    /// Protects what git obeys below `root`, and says what cannot be protected.
    pub(super) fn protect_git(&mut self, root: &Path, cache: &RepositoryCache) {
        let home = self.home.clone();
        let home = home.as_deref();
        let shared = GitSettings::shared(home, &mut self.survey_budget);
        let found = cache.find(root);
        if found.is_cut {
            self.notices.push(Notice::Walk(root.to_owned()));
        }
        // First what the user's own repository names, which no flood of others must displace.
        let mut wanted = Vec::new();
        if let Some(own) = Repository::around(root) {
            self.add_obeyed(root, &own, &shared, home, cache, &mut wanted);
        }
        for folder in &found.closed {
            self.close(root, folder, &mut wanted);
        }
        for folder in &found.repositories {
            if self.is_given_up(root) {
                break;
            }
            if wanted.len() > 2 * MOUNTS_MAX {
                // Only the folder at the top counts any more.
                wanted.push(folder.join(".git"));
                continue;
            }
            self.protect_nested(root, folder, Provenance::Anyone, &mut wanted);
            if wanted.len() <= MOUNTS_MAX
                && let Some(repository) = Repository::at(folder)
            {
                self.add_obeyed(root, &repository, &shared, home, cache, &mut wanted);
            }
        }
        if self.survey_budget.is_spent() {
            self.give_up(root, Notice::Costly(root.to_owned()));
        }
        if !self.is_given_up(root) {
            self.spend(root, wanted);
        }
        self.notices.truncate(NOTICES_MAX);
    }

    /// Whether the root is read-only, so that nothing more has to be found in it.
    fn is_given_up(&self, root: &Path) -> bool {
        self.survey_budget.is_spent() || self.whole_roots.iter().any(|it| it == root)
    }

    /// Makes a root read-only.
    pub(super) fn give_up(&mut self, root: &Path, notice: Notice) {
        if !self.whole_roots.iter().any(|it| it == root) {
            self.whole_roots.push(root.to_owned());
            // Of all of them it is the one to keep.
            self.notices.insert(0, notice);
        }
    }

    /// Protects a folder as a whole, because what is in it is not known.
    fn close(&mut self, root: &Path, folder: &Path, wanted: &mut Vec<PathBuf>) {
        let notice = Notice::Closed(folder.to_owned());
        if folder == root {
            self.give_up(root, notice);
        } else {
            self.notices.push(notice);
            wanted.push(folder.to_owned());
        }
    }

    /// Adds what a repository names: its submodules, and the paths of its configuration.
    fn add_obeyed(
        &mut self,
        root: &Path,
        repository: &Repository,
        shared: &GitSettings,
        home: Option<&Path>,
        cache: &RepositoryCache,
        wanted: &mut Vec<PathBuf>,
    ) {
        let own = GitSettings::of(repository, home, &mut self.survey_budget);
        let gitlinks = cache.gitlinks(
            &repository.git_dir,
            own.oid_bytes(),
            &mut self.survey_budget,
        );
        let tops = own.tops(repository, &mut self.survey_budget);
        for path in gitlinks
            .iter()
            .flat_map(|below| tops.iter().map(move |it| it.join(below)))
        {
            if self.is_given_up(root) {
                return;
            }
            if path.starts_with(root) && path != root {
                self.protect_gitlink(root, &path, wanted);
            }
        }
        for key in shared.unknown_programs().chain(own.unknown_programs()) {
            self.notices.push(Notice::Open {
                path: repository.folder.clone(),
                because: format!(
                    "`{key}` of git runs a program by a path that is not known before"
                ),
            });
        }
        for (path, named) in shared.paths(&tops, home).chain(own.paths(&tops, home)) {
            if self.is_given_up(root) {
                return;
            }
            self.protect_named(&path, &named, wanted);
        }
    }

    /// The `.git` in a folder below a root.
    fn protect_nested(
        &mut self,
        root: &Path,
        folder: &Path,
        maker: Provenance,
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
                if let Some(closed) = closed_above(root, folder) {
                    self.close(root, &closed, wanted);
                }
            }
            // It has gone.
            Err(_) => {}
        }
    }

    /// Protects the git directory that a `.git` file names. A `.git` file that a command may have made counts only if it names
    /// a repository that exists.
    fn protect_gitdir(
        &mut self,
        root: &Path,
        folder: &Path,
        maker: Provenance,
        wanted: &mut Vec<PathBuf>,
    ) {
        let Some(git_dir) = named_in(&folder.join(".git"), "gitdir: ", folder) else {
            return;
        };
        let common = named_in(&git_dir.join("commondir"), "", &git_dir);
        for path in [Some(git_dir), common].into_iter().flatten() {
            match fs::canonicalize(&path) {
                Ok(real) if self.is_kept(&real, root) => {
                    if maker == Provenance::User || is_git_dir(&real) {
                        wanted.push(real);
                    }
                }
                Ok(_) => {}
                Err(_) if maker == Provenance::User => self.take_missing(root, &path, wanted),
                Err(_) => {}
            }
        }
    }

    /// A submodule, whether or not it was checked out: git looks into it from the repository around it.
    fn protect_gitlink(&mut self, root: &Path, path: &Path, wanted: &mut Vec<PathBuf>) {
        let Ok(below) = path.strip_prefix(root) else {
            return;
        };
        if wanted.len() > 2 * MOUNTS_MAX {
            return self.protect_top(root, path, wanted);
        }
        let mut at = root.to_owned();
        for name in below {
            at.push(name);
            if self.survey_budget.look(&at).is_err() {
                return;
            }
            match fs::symlink_metadata(&at) {
                Ok(found) if is_placeholder(&found) => return self.take_missing(root, &at, wanted),
                Ok(found) if found.is_symlink() => return self.protect_link(root, &at, wanted),
                Ok(found) if !found.is_dir() => return wanted.push(at),
                Ok(_) if !can_be_entered(&at) => return self.close(root, &at, wanted),
                Ok(_) => {}
                Err(_) => return self.take_missing(root, &at, wanted),
            }
        }
        if fs::symlink_metadata(at.join(".git")).is_ok() {
            return self.protect_nested(root, &at, Provenance::User, wanted);
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

    /// Protects the path that a setting names.
    fn protect_named(&mut self, path: &Path, named: &NamedPath, wanted: &mut Vec<PathBuf>) {
        let Ok(way) = PolicyPath::within(path, &mut self.survey_budget) else {
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
            PathUse::Program if !found.as_ref().is_some_and(fs::Metadata::is_file) => {}
            _ if self.write.iter().any(|it| it.starts_with(&way.real)) => {
                self.notices.push(Notice::Open {
                    path: way.real,
                    because: format!("`{}` of git names it", named.key),
                });
            }
            _ if found.is_some() => wanted.push(way.real),
            PathUse::Folder => self.take_missing(&root, &way.real, wanted),
            _ if self.budget.placeholders == 0 => self.protect_top(&root, &way.real, wanted),
            // An empty folder in its place would stop git.
            PathUse::Include | PathUse::Program => match self.placeholders.take_file(&way.real) {
                Ok(true) => {
                    self.budget.placeholders -= 1;
                    wanted.push(way.real);
                }
                Ok(false) => {}
                Err(_) => self.notices.push(Notice::Open {
                    path: way.real,
                    because: format!("`{}` of git names it", named.key),
                }),
            },
        }
    }

    /// Links on the way that a command could exchange.
    fn notice_links(&mut self, way: &PolicyPath, named: &NamedPath) {
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
        let Ok(way) = PolicyPath::within(path, &mut self.survey_budget) else {
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
        if self.budget.placeholders == 0 {
            return self.protect_top(root, missing, wanted);
        }
        match self.placeholders.take(missing) {
            Ok(true) => {
                self.budget.placeholders -= 1;
                wanted.push(missing.to_owned());
            }
            Ok(false) => {}
            Err(_) => self.notices.push(Notice::Open {
                path: missing.to_owned(),
                because: "git looks for a repository there".to_owned(),
            }),
        }
    }

    /// Protects the folder at the top of the root that a path lies in, where there are too many to protect each alone.
    fn protect_top(&mut self, root: &Path, path: &Path, wanted: &mut Vec<PathBuf>) {
        let below = path.strip_prefix(root).ok();
        let Some(top) = below.and_then(|it| it.iter().next()) else {
            return;
        };
        let top = root.join(top);
        self.survey_budget.spend(wanted.len() * COMPARED_BYTES);
        if wanted.contains(&top) {
            return;
        }
        match fs::symlink_metadata(&top) {
            Ok(found) if found.is_symlink() => self.protect_link(root, &top, wanted),
            Ok(found) if !is_placeholder(&found) => {
                self.notices.push(Notice::Many(top.clone()));
                wanted.push(top);
            }
            _ => self.give_up(root, Notice::Many(root.to_owned())),
        }
    }

    /// Whether it is protected with something around it, such as a `.git`.
    fn is_covered(&mut self, path: &Path, wanted: &[PathBuf]) -> bool {
        self.survey_budget.spend(wanted.len() * COMPARED_BYTES);
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

/// The first folder on the way that cannot be entered, from the root on.
fn closed_above(root: &Path, folder: &Path) -> Option<PathBuf> {
    let below = folder.strip_prefix(root).ok()?;
    let mut at = root.to_owned();
    let mut names = below.iter();
    while can_be_entered(&at) {
        at.push(names.next()?);
    }
    Some(at)
}
