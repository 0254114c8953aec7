//! Applies the rules to the disk: which roots exist, which paths are protected, which are hidden.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::budget::SurveyBudget;
use super::folders::is_folder;
use super::git::MountBudget;
use super::git_settings::named_in;
use super::inode_pins::{InodePin, became_link};
use super::notice::Notice;
use super::placeholders::Placeholders;
use super::repositories::RepositoryCache;
use super::{SandboxRefusal, Tier, safe_open};
use crate::policy::{ReadScope, SandboxRules, Tmp};

/// Folders of the system, readable where reading is by list.
const SYSTEM: [&str; 10] = [
    "/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin", "/usr",
];

/// Secrets among the system's settings, which root could read.
const SECRETS: [&str; 8] = [
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/raddle",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
];

/// Paths of a new `/proc` that belong to the kernel and not to the sandbox; root could write them.
const KERNEL: [&str; 4] = ["/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Entries of the user's home that may be written.
const VISIBLE_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HiddenKind {
    Folder,
    File,
}

/// Result of the survey. Paths of roots are real: without links, and none of them inside another
/// with the same access.
#[derive(Debug, Default)]
pub(super) struct RuleSet {
    /// Folders of the system, with their targets if they are links.
    pub system: Vec<(PathBuf, Option<PathBuf>)>,
    /// Folders where services keep their sockets.
    pub run: Vec<PathBuf>,
    /// Paths of `/proc` that belong to the kernel.
    pub kernel: Vec<PathBuf>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// The roots with protected names, each pinned to the inode in which these were created.
    pub roots: Vec<InodePin>,
    pub protected: Vec<PathBuf>,
    pub hidden: Vec<(PathBuf, HiddenKind)>,
    /// The file that names the resolvers, if it lies in `/run`.
    pub resolver: Option<PathBuf>,
    /// Placeholders on the disk that occupy missing names.
    pub placeholders: Placeholders,
    /// Roots in which not everything can be found or protected; they become read-only.
    pub whole_roots: Vec<PathBuf>,
    /// Paths that could not be protected, or only with more around them.
    pub notices: Vec<Notice>,
    pub budget: MountBudget,
    /// The work that the survey may still do.
    pub survey_budget: SurveyBudget,
    pub home: Option<PathBuf>,
}

impl RuleSet {
    /// Surveys the disk. `home` is the user's home, whose dotfiles control shells and other
    /// programs.
    pub fn survey(
        rules: &SandboxRules,
        tier: Tier,
        cache: &RepositoryCache,
        home: Option<&Path>,
    ) -> Result<Self, SandboxRefusal> {
        // Links are resolved once: a command may replace a root by a link at any moment.
        let named = roots(&rules.write)?;
        let scratch = roots(&rules.scratch)?;
        let mut rule_set = Self {
            home: home.and_then(|it| fs::canonicalize(it).ok()),
            run: existing(&["/run", "/var/run"], is_folder),
            kernel: existing(&KERNEL, Path::exists),
            write: outermost([&named[..], &scratch[..]].concat()),
            ..Self::default()
        };
        let own = rule_set.open_home(tier)?;
        if let ReadScope::Listed(paths) = &rules.read {
            let own = rules.settings.iter();
            let own: Vec<PathBuf> = own.filter_map(|it| fs::canonicalize(it).ok()).collect();
            let is_own = |path: &PathBuf| own.iter().any(|it| path.starts_with(it));
            rule_set.read = listed(paths)?;
            // The server's own paths stay hidden, although a deeper path wins.
            rule_set.read.retain(|it| !is_own(it));
            rule_set.system = SYSTEM
                .iter()
                .filter_map(|it| system(Path::new(it)))
                .collect();
            rule_set.hide(SECRETS.iter().map(Path::new))?;
        }
        if let Tmp::Folder(folder) = &rules.tmp
            && !is_folder(folder)
        {
            return Err(SandboxRefusal::Root {
                path: folder.clone(),
                why: "it must be a folder to serve as /tmp",
            });
        }
        absolute(&rules.hidden)?;
        rule_set.hide(rules.hidden.iter().map(PathBuf::as_path))?;
        rule_set.hide_around(&rules.settings)?;
        rule_set.open_named(&named);
        rule_set.resolver = fs::canonicalize("/etc/resolv.conf")
            .ok()
            .filter(|it| it.starts_with("/run"));
        if tier == Tier::A {
            // A root inside a protected name is granted as a whole.
            let is_inside = |root: &Path| {
                let below = named
                    .iter()
                    .filter_map(|outer| root.strip_prefix(outer).ok());
                let is_protected = |name: &OsStr| rules.protected.iter().any(|it| it == name);
                // A repository is protected at any depth, other names at the top.
                let is_protected_at = |(at, name): (usize, &OsStr)| {
                    is_protected(name) && (at == 0 || name == OsStr::new(".git"))
                };
                below
                    .into_iter()
                    .any(|rest| rest.iter().enumerate().any(is_protected_at))
            };
            for root in named.iter().filter(|root| !is_inside(root)) {
                if own.is_some() && own == rule_set.home && rule_set.home.as_ref() == Some(root) {
                    // The protected names of the home are dotfiles.
                    for folder in rule_set
                        .write
                        .clone()
                        .iter()
                        .filter(|it| it.starts_with(root))
                    {
                        rule_set.protect_git(folder, cache);
                    }
                } else {
                    rule_set.protect(root, rules, cache)?;
                }
            }
            if rule_set.survey_budget.is_spent() {
                // Settings beyond the budget may name a path in any of the roots.
                for root in named.iter().filter(|root| !is_inside(root)) {
                    rule_set.give_up(root, Notice::Costly(root.clone()));
                }
            }
            // A rule that names a path itself overrides its protection.
            rule_set.protected.retain(|it| !named.contains(it));
            let whole = std::mem::take(&mut rule_set.whole_roots);
            rule_set.write.retain(|it| !whole.contains(it));
            rule_set.protected.extend(whole.iter().cloned());
            rule_set.protected.extend(own.clone());
            let nested = named
                .into_iter()
                .filter(|it| !whole.contains(it) && own.as_ref() != Some(it))
                .filter(|it| rule_set.protected.iter().any(|outer| it.starts_with(outer)));
            rule_set.write.extend(nested);
        }
        Ok(rule_set)
    }

    /// Returns the user's home if it lies in a writable root. Then only its visible entries stay
    /// writable: neither its dotfiles nor its top, where a command could create a missing one.
    fn open_home(&mut self, tier: Tier) -> Result<Option<PathBuf>, SandboxRefusal> {
        let Some(home) = self.home.clone() else {
            return Ok(None);
        };
        let Some(root) = self.write.iter().find(|root| home.starts_with(root)) else {
            return Ok(None);
        };
        if *root != home && tier != Tier::A {
            return Err(SandboxRefusal::Root {
                path: root.clone(),
                why: "your home is in it, and this machine cannot protect its dotfiles; name a folder in your home",
            });
        }
        let entries = fs::read_dir(&home).map_err(|source| SandboxRefusal::Disk {
            path: home.clone(),
            source,
        })?;
        let is_visible = |it: &fs::DirEntry| {
            let is_link = it.file_type().is_ok_and(|it| it.is_symlink());
            !is_link && !it.file_name().as_encoded_bytes().starts_with(b".")
        };
        let visible = entries.flatten().filter(is_visible);
        let mut visible: Vec<PathBuf> = visible.map(|it| it.path()).collect();
        visible.sort();
        visible.truncate(VISIBLE_MAX);
        self.write.retain(|it| *it != home);
        self.write.extend(visible);
        self.notices.push(Notice::Home(home.clone()));
        Ok(Some(home))
    }

    fn protect(
        &mut self,
        root: &Path,
        rules: &SandboxRules,
        cache: &RepositoryCache,
    ) -> Result<(), SandboxRefusal> {
        let root_fd = open_root(root)?;
        let stat = fstat(&root_fd).map_err(|source| SandboxRefusal::Disk {
            path: root.to_owned(),
            source: source.into(),
        })?;
        self.roots.push(InodePin::of(root, &stat));
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(());
        }
        let root_fd = Arc::new(root_fd);
        for name in &rules.protected {
            let path = root.join(name);
            match kind(&path)? {
                Kind::Link => return Err(SandboxRefusal::Link { path }),
                Kind::Missing | Kind::EmptyFolder => {
                    if self.placeholders.occupy_in(&root_fd, &path)? {
                        self.protected.push(path);
                    }
                }
                Kind::Other => {
                    if name == OsStr::new(".git") {
                        self.protect_elsewhere(root, &path)?;
                    }
                    self.protected.push(path);
                }
            }
        }
        if rules
            .protected
            .iter()
            .any(|name| name == OsStr::new(".git"))
        {
            self.protect_git(root, cache);
        }
        Ok(())
    }

    /// Removes protected paths inside other protected folders: a mount in a folder that cannot be
    /// entered would fail.
    pub fn drop_covered(&mut self) {
        let mut protected = std::mem::take(&mut self.protected);
        protected.sort();
        protected.dedup();
        // Sorted, a path is followed by everything below it.
        let mut outer_paths: Vec<PathBuf> = Vec::new();
        for path in protected {
            while outer_paths.pop_if(|it| !path.starts_with(it)).is_some() {}
            // A writable root between the two ends the protection of the outer one.
            let covers = |outer: &PathBuf| {
                let opens = |root: &PathBuf| root.starts_with(outer) && path.starts_with(root);
                !self.write.iter().any(opens)
            };
            if !outer_paths.iter().any(covers) {
                outer_paths.push(path.clone());
                self.protected.push(path);
            }
        }
    }

    /// Protects the repository of a worktree. Its `.git` is a file that names the repository, which
    /// may name its common part. Either may lie where commands can write.
    fn protect_elsewhere(&mut self, root: &Path, dot_git: &Path) -> Result<(), SandboxRefusal> {
        let Some(folder) = named_in(dot_git, "gitdir: ", root) else {
            return Ok(());
        };
        let common = named_in(&folder.join("commondir"), "", &folder);
        for path in [Some(folder), common].into_iter().flatten() {
            let writable = |it: &Path| self.write.iter().any(|root| it.starts_with(root));
            match fs::canonicalize(&path) {
                Ok(path) if writable(&path) => self.protected.push(path),
                Ok(_) => {}
                Err(_) if nearest(&path).is_some_and(|it| writable(&it)) => {
                    return Err(SandboxRefusal::Lost { path });
                }
                // No command inside can create it.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

enum Kind {
    Missing,
    EmptyFolder,
    Link,
    Other,
}

fn kind(path: &Path) -> Result<Kind, SandboxRefusal> {
    let disk = |source| SandboxRefusal::Disk {
        path: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Missing),
        Err(error) => Err(disk(error)),
        Ok(metadata) if metadata.is_symlink() => Ok(Kind::Link),
        Ok(metadata) if metadata.is_dir() => {
            // A folder that cannot be read is not a placeholder, because those are empty.
            let is_empty = fs::read_dir(path).is_ok_and(|mut it| it.next().is_none());
            Ok(if is_empty {
                Kind::EmptyFolder
            } else {
                Kind::Other
            })
        }
        Ok(_) => Ok(Kind::Other),
    }
}

/// Opens a root without any access right. A link in its place, or on the path to it, is an error.
fn open_root(root: &Path) -> Result<OwnedFd, SandboxRefusal> {
    safe_open::entry(root).map_err(|source| match source.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => became_link(root),
        _ => SandboxRefusal::Disk {
            path: root.to_owned(),
            source,
        },
    })
}

/// Returns the roots that exist. Each must be a real path: a command of another thread could have
/// put a link in its place to gain access to the target.
fn roots(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxRefusal> {
    let mut roots: Vec<PathBuf> = Vec::new();
    absolute(paths)?;
    for path in paths {
        match fs::canonicalize(path) {
            Ok(real) if real != *path => {
                let path = path.clone();
                return Err(SandboxRefusal::Moved { path, real });
            }
            Ok(real) => roots.push(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(SandboxRefusal::Disk {
                    path: path.clone(),
                    source,
                });
            }
        }
    }
    if let Some(path) = roots.iter().find(|it| it.parent().is_none()) {
        return Err(SandboxRefusal::Root {
            path: path.clone(),
            why: "it is the whole disk; name the folders that commands may write, or give full access",
        });
    }
    Ok(roots)
}

/// Returns the roots that lie in no other.
pub(super) fn outermost(mut roots: Vec<PathBuf>) -> Vec<PathBuf> {
    roots.sort();
    roots.dedup_by(|inner, outer| inner.starts_with(outer));
    roots
}

/// Returns the real paths of those that exist.
/// Returns the paths that exist of a list to which reads are limited. Refuses a link on one, which
/// a command may have created, and the whole disk.
fn listed(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxRefusal> {
    absolute(paths)?;
    let mut listed = Vec::new();
    for path in paths {
        let Ok(real) = fs::canonicalize(path) else {
            continue;
        };
        let path = path.clone();
        if real != path {
            return Err(SandboxRefusal::Moved { path, real });
        }
        if real.parent().is_none() {
            let why = "it is the whole disk, and reads are limited; name the folders that commands may read";
            return Err(SandboxRefusal::Root { path, why });
        }
        listed.push(real);
    }
    Ok(listed)
}

fn absolute(paths: &[PathBuf]) -> Result<(), SandboxRefusal> {
    let is_plain =
        |it: &PathBuf| it.is_absolute() && !it.components().any(|it| it == Component::ParentDir);
    match paths.iter().find(|it| !is_plain(it)) {
        Some(path) => Err(SandboxRefusal::Root {
            path: path.clone(),
            why: "it must be absolute and without `..`",
        }),
        None => Ok(()),
    }
}

fn existing(paths: &[&str], exists: fn(&Path) -> bool) -> Vec<PathBuf> {
    let paths = paths.iter().map(Path::new);
    paths.filter(|it| exists(it)).map(Path::to_owned).collect()
}

/// Returns a folder of the system, with its target if it is a link, as `/bin` often is.
fn system(path: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let target = if metadata.is_symlink() {
        Some(fs::read_link(path).ok()?)
    } else {
        None
    };
    Some((path.to_owned(), target))
}

/// Returns the real path of the nearest existing ancestor.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|it| fs::canonicalize(it).ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A sandboxed command of another thread may replace a root after the survey found it, and
    /// restore it.
    #[test]
    fn protected_names_are_created_in_the_folder_that_is_mounted() {
        type Exchange = fn(&Path) -> io::Result<()>;
        let cases: [(&str, Option<Exchange>, bool); 5] = [
            ("nothing", None, false),
            ("a link", Some(|at| symlink("outside", at)), true),
            ("a file", Some(|at| fs::write(at, "")), false),
            (
                "another folder",
                Some(|at| fs::create_dir_all(at.join("sub"))),
                false,
            ),
            ("nothing at all", Some(|_| Ok(())), true),
        ];
        for (name, exchange, is_refused) in cases {
            let folder = tempfile::tempdir().expect("a folder");
            let base = fs::canonicalize(folder.path()).expect("its plain path");
            let (root, away) = (base.join("root"), base.join("away"));
            fs::create_dir(&root).expect("a root");
            fs::create_dir(base.join("outside")).expect("a folder");
            let rules = SandboxRules::workspace_write(vec![root.clone()]);
            let mut rule_set = RuleSet {
                write: roots(&rules.write).expect("it is there"),
                ..RuleSet::default()
            };
            if let Some(exchange) = exchange {
                fs::rename(&root, &away).expect("it is moved");
                exchange(&root).expect("something else is there");
            }
            let protected = rule_set.protect(&root, &rules, &RepositoryCache::default());
            assert_eq!(protected.is_err(), is_refused, "{name}: {protected:?}");
            let outside = fs::read_dir(base.join("outside")).expect("it is there");
            assert_eq!(outside.count(), 0, "{name}");
            if exchange.is_some() {
                let _ = fs::rename(&root, base.join("other"));
                fs::rename(&away, &root).expect("it is moved back");
            }
            // The helper accepts only the folder in which the protected names were created.
            let is_same = rule_set.roots.iter().any(|it| it.open().is_ok());
            assert_eq!(is_same, exchange.is_none(), "{name}");
            assert_eq!(root.join(".git").exists(), is_same, "{name}");
        }
    }
}
