//! Files that control git in a writable folder, besides the `.git` at its top: repositories below
//! it, submodules that an index names, and paths that a configuration names.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::folders::can_be_entered;
use super::git_config::{NamedPath, PathUse};
use super::git_settings::{GitSettings, Repository, named_in};
use super::notice::Notice;
use super::placeholders::is_placeholder;
use super::policy_path::PolicyPath;
use super::repositories::RepositoryCache;
use super::survey::RuleSet;

/// Limit: mounts that protect single paths of git; beyond it, folders at the top of the workspace
/// become read-only as a whole.
///
/// Bubblewrap accepts nine thousand arguments, a mount needs up to five of them, and its running
/// time grows with their square.
const MOUNTS_MAX: usize = 300;
/// Limit: folders that become read-only as a whole to protect git; beyond it, the workspace is
/// read-only.
const WHOLE_MAX: usize = 200;

/// Placeholders for missing names that control git. Each occupies the disk, and a descriptor or two
/// of the server, for as long as a command runs.
const PLACEHOLDERS_MAX: usize = 128;
/// Cost of comparing two paths, in bytes of the budget.
const COMPARED_BYTES: usize = 4;

/// Limit: notices about paths that a sandbox could not protect; beyond it, further paths are not
/// named.
const NOTICES_MAX: usize = 100;

/// The mounts and placeholders that are left for one sandbox.
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

/// Whether a command may have created the entry that names a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Provenance {
    /// No command could: a name at the top of a root, or a submodule of an index.
    User,
    /// A command could have created it.
    Anyone,
}

/// Returns whether git treats a folder as a repository without a work tree.
pub fn is_git_dir(folder: &Path) -> bool {
    let has = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

impl RuleSet {
    /// Protects the paths that control git below `root`, and adds notices for those that it cannot
    /// protect.
    pub(super) fn protect_git(&mut self, root: &Path, cache: &RepositoryCache) {
        let home = self.home.clone();
        let home = home.as_deref();
        let shared = GitSettings::shared(home, &mut self.survey_budget);
        let search = cache.find(root);
        if search.is_cut {
            self.notices.push(Notice::Walk(root.to_owned()));
        }
        // The paths of the user's own repository come first: a flood of others must not displace
        // them.
        let mut candidates = Vec::new();
        if let Some(own) = Repository::around(root) {
            self.add_control_paths(root, &own, &shared, home, cache, &mut candidates);
        }
        for folder in &search.closed {
            self.close(root, folder, &mut candidates);
        }
        for folder in &search.repositories {
            if self.is_given_up(root) {
                break;
            }
            if candidates.len() > 2 * MOUNTS_MAX {
                // Only the folder at the top counts from here on.
                candidates.push(folder.join(".git"));
                continue;
            }
            self.protect_nested(root, folder, Provenance::Anyone, &mut candidates);
            if candidates.len() <= MOUNTS_MAX
                && let Some(repository) = Repository::at(folder)
            {
                self.add_control_paths(root, &repository, &shared, home, cache, &mut candidates);
            }
        }
        if self.survey_budget.is_spent() {
            self.give_up(root, Notice::Costly(root.to_owned()));
        }
        if !self.is_given_up(root) {
            self.spend(root, candidates);
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
            // This notice must survive the truncation.
            self.notices.insert(0, notice);
        }
    }

    /// Protects a folder as a whole, because its contents are unknown.
    fn close(&mut self, root: &Path, folder: &Path, candidates: &mut Vec<PathBuf>) {
        let notice = Notice::Closed(folder.to_owned());
        if folder == root {
            self.give_up(root, notice);
        } else {
            self.notices.push(notice);
            candidates.push(folder.to_owned());
        }
    }

    /// Adds the paths that a repository names: its submodules, and the paths of its configuration.
    fn add_control_paths(
        &mut self,
        root: &Path,
        repository: &Repository,
        shared: &GitSettings,
        home: Option<&Path>,
        cache: &RepositoryCache,
        candidates: &mut Vec<PathBuf>,
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
                self.protect_gitlink(root, &path, candidates);
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
            self.protect_named(&path, &named, candidates);
        }
    }

    /// Protects the `.git` in a folder below a root.
    fn protect_nested(
        &mut self,
        root: &Path,
        folder: &Path,
        provenance: Provenance,
        candidates: &mut Vec<PathBuf>,
    ) {
        let dot_git = folder.join(".git");
        match fs::symlink_metadata(&dot_git) {
            Ok(metadata) if metadata.is_symlink() => {
                self.notices.push(Notice::Link(dot_git.clone()));
                candidates.push(folder.to_owned());
                let target = fs::canonicalize(&dot_git).ok();
                candidates.extend(target.filter(|it| self.can_be_protected(it, root)));
            }
            Ok(_) => {
                self.protect_gitdir(root, folder, provenance, candidates);
                candidates.push(dot_git);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                if let Some(closed) = closed_above(root, folder) {
                    self.close(root, &closed, candidates);
                }
            }
            // It has been removed since the listing.
            Err(_) => {}
        }
    }

    /// Protects the git directory that a `.git` file names. A `.git` file that a command may have
    /// created counts only if it names a repository that exists.
    fn protect_gitdir(
        &mut self,
        root: &Path,
        folder: &Path,
        provenance: Provenance,
        candidates: &mut Vec<PathBuf>,
    ) {
        let Some(git_dir) = named_in(&folder.join(".git"), "gitdir: ", folder) else {
            return;
        };
        let common = named_in(&git_dir.join("commondir"), "", &git_dir);
        for path in [Some(git_dir), common].into_iter().flatten() {
            match fs::canonicalize(&path) {
                Ok(real) if self.can_be_protected(&real, root) => {
                    if provenance == Provenance::User || is_git_dir(&real) {
                        candidates.push(real);
                    }
                }
                Ok(_) => {}
                Err(_) if provenance == Provenance::User => {
                    self.place_missing(root, &path, candidates)
                }
                Err(_) => {}
            }
        }
    }

    /// Protects a submodule, whether or not it was checked out: git looks into it from the
    /// repository around it.
    fn protect_gitlink(&mut self, root: &Path, path: &Path, candidates: &mut Vec<PathBuf>) {
        let Ok(below) = path.strip_prefix(root) else {
            return;
        };
        if candidates.len() > 2 * MOUNTS_MAX {
            return self.protect_top(root, path, candidates);
        }
        let mut at = root.to_owned();
        for name in below {
            at.push(name);
            if self.survey_budget.look(&at).is_err() {
                return;
            }
            match fs::symlink_metadata(&at) {
                Ok(metadata) if is_placeholder(&metadata) => {
                    return self.place_missing(root, &at, candidates);
                }
                Ok(metadata) if metadata.is_symlink() => {
                    return self.protect_link(root, &at, candidates);
                }
                Ok(metadata) if !metadata.is_dir() => return candidates.push(at),
                Ok(_) if !can_be_entered(&at) => return self.close(root, &at, candidates),
                Ok(_) => {}
                Err(_) => return self.place_missing(root, &at, candidates),
            }
        }
        if fs::symlink_metadata(at.join(".git")).is_ok() {
            return self.protect_nested(root, &at, Provenance::User, candidates);
        }
        let is_empty = fs::read_dir(&at).is_ok_and(|mut it| it.next().is_none());
        match is_empty {
            // An empty folder needs no placeholder on the disk.
            true => candidates.push(at),
            false => self.place_missing(root, &at.join(".git"), candidates),
        }
    }

    /// Protects a link in place of which git would find something else: it stays if the folder
    /// around it stays.
    fn protect_link(&mut self, root: &Path, link: &Path, candidates: &mut Vec<PathBuf>) {
        match link
            .parent()
            .filter(|it| *it != root && self.can_be_protected(it, root))
        {
            Some(folder) => {
                self.notices.push(Notice::Link(link.to_owned()));
                candidates.push(folder.to_owned());
            }
            None => self.notices.push(Notice::Open {
                path: link.to_owned(),
                because: "it is a link where the index has a submodule".to_owned(),
            }),
        }
    }

    /// Protects the path that a setting names.
    fn protect_named(&mut self, path: &Path, named: &NamedPath, candidates: &mut Vec<PathBuf>) {
        let Ok(policy_path) = PolicyPath::within(path, &mut self.survey_budget) else {
            return;
        };
        // Includes links that lead outside.
        self.notice_links(&policy_path, named);
        let Some(root) = self.root_of(&policy_path.real) else {
            return;
        };
        if self.is_covered(&policy_path.real, candidates) {
            return;
        }
        let metadata = fs::symlink_metadata(&policy_path.real).ok();
        let metadata = metadata.filter(|it| !is_placeholder(it));
        match named.use_ {
            // An argument of a command need not be a path.
            PathUse::Program if !metadata.as_ref().is_some_and(fs::Metadata::is_file) => {}
            _ if self
                .write
                .iter()
                .any(|it| it.starts_with(&policy_path.real)) =>
            {
                self.notices.push(Notice::Open {
                    path: policy_path.real,
                    because: format!("`{}` of git names it", named.key),
                });
            }
            _ if metadata.is_some() => candidates.push(policy_path.real),
            PathUse::Folder => self.place_missing(&root, &policy_path.real, candidates),
            _ if self.budget.placeholders == 0 => {
                self.protect_top(&root, &policy_path.real, candidates)
            }
            // An empty folder in its place would stop git.
            PathUse::Include | PathUse::Program => {
                match self.placeholders.occupy_with_file(&policy_path.real) {
                    Ok(true) => {
                        self.budget.placeholders -= 1;
                        candidates.push(policy_path.real);
                    }
                    Ok(false) => {}
                    Err(_) => self.notices.push(Notice::Open {
                        path: policy_path.real,
                        because: format!("`{}` of git names it", named.key),
                    }),
                }
            }
        }
    }

    /// Adds notices for links on the path that a command could replace.
    fn notice_links(&mut self, policy_path: &PolicyPath, named: &NamedPath) {
        let links = policy_path
            .links
            .iter()
            .filter(|it| self.root_of(it).is_some());
        let notices = links.map(|link| Notice::Open {
            path: link.clone(),
            because: format!("`{}` of git leads through it", named.key),
        });
        let notices: Vec<Notice> = notices.collect();
        self.notices.extend(notices);
    }

    /// Puts a placeholder at the first missing name of a path, so that no command creates it.
    fn place_missing(&mut self, root: &Path, path: &Path, candidates: &mut Vec<PathBuf>) {
        let Ok(policy_path) = PolicyPath::within(path, &mut self.survey_budget) else {
            return;
        };
        if !self.can_be_protected(&policy_path.real, root)
            || self.is_covered(&policy_path.real, candidates)
        {
            return;
        }
        let is_missing =
            |it: &&Path| fs::symlink_metadata(it).map_or(true, |it| is_placeholder(&it));
        let missing = policy_path.real.ancestors().take_while(is_missing).last();
        let Some(missing) = missing else {
            return;
        };
        if self.budget.placeholders == 0 {
            return self.protect_top(root, missing, candidates);
        }
        match self.placeholders.occupy(missing) {
            Ok(true) => {
                self.budget.placeholders -= 1;
                candidates.push(missing.to_owned());
            }
            Ok(false) => {}
            Err(_) => self.notices.push(Notice::Open {
                path: missing.to_owned(),
                because: "git looks for a repository there".to_owned(),
            }),
        }
    }

    /// Protects the folder at the top of the root that contains a path, where there are too many
    /// paths to protect each alone.
    fn protect_top(&mut self, root: &Path, path: &Path, candidates: &mut Vec<PathBuf>) {
        let below = path.strip_prefix(root).ok();
        let Some(top) = below.and_then(|it| it.iter().next()) else {
            return;
        };
        let top = root.join(top);
        self.survey_budget.spend(candidates.len() * COMPARED_BYTES);
        if candidates.contains(&top) {
            return;
        }
        match fs::symlink_metadata(&top) {
            Ok(metadata) if metadata.is_symlink() => self.protect_link(root, &top, candidates),
            Ok(metadata) if !is_placeholder(&metadata) => {
                self.notices.push(Notice::Many(top.clone()));
                candidates.push(top);
            }
            _ => self.give_up(root, Notice::Many(root.to_owned())),
        }
    }

    /// Whether an ancestor of the path, such as a `.git`, is protected already.
    fn is_covered(&mut self, path: &Path, candidates: &[PathBuf]) -> bool {
        self.survey_budget.spend(candidates.len() * COMPARED_BYTES);
        let mut protected = self.protected.iter().chain(candidates);
        protected.any(|it| path.starts_with(it) && path != it)
    }

    /// Returns the writable root that contains a path.
    fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let around = self.write.iter().filter(|root| path.starts_with(root));
        let root = around.max_by_key(|it| it.components().count())?;
        (!self.is_out_of_sight(path)).then(|| root.clone())
    }

    /// Whether a path lies in a writable root and is not one that must stay writable itself.
    fn can_be_protected(&self, path: &Path, root: &Path) -> bool {
        !root.starts_with(path) && self.root_of(path).is_some()
    }

    /// Whether the path lies in a hidden folder: to mount it would reveal it.
    fn is_out_of_sight(&self, path: &Path) -> bool {
        self.hidden.iter().any(|(hidden, _)| {
            let is_open = |it: &PathBuf| it.starts_with(hidden) && path.starts_with(it);
            path.starts_with(hidden) && !self.write.iter().any(is_open)
        })
    }

    /// Protects paths one by one while mounts are left, then the folders at the top of the root
    /// that contain the others, and in the end the root.
    fn spend(&mut self, root: &Path, candidates: Vec<PathBuf>) {
        let mut mounted: BTreeSet<PathBuf> = BTreeSet::new();
        let mut whole: BTreeSet<PathBuf> = BTreeSet::new();
        for path in candidates {
            if mounted.contains(&path) && self.protected.contains(&path)
                || self.is_out_of_sight(&path)
            {
                continue;
            }
            // Every folder on the path is mounted on itself.
            let ancestors = path
                .ancestors()
                .take_while(|it| it.starts_with(root) && *it != root);
            let new: Vec<PathBuf> = ancestors
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

/// Returns the first folder from the root to `folder` that cannot be entered.
fn closed_above(root: &Path, folder: &Path) -> Option<PathBuf> {
    let below = folder.strip_prefix(root).ok()?;
    let mut at = root.to_owned();
    let mut names = below.iter();
    while can_be_entered(&at) {
        at.push(names.next()?);
    }
    Some(at)
}
