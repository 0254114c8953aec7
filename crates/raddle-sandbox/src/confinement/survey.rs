//! What of the rules is on the disk: which roots there are, what must be kept from changing, what hides.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::budget::SurveyBudget;
use super::git::MountBudget;
use super::git_settings::named_in;
use super::inode_pins::{InodePin, became_link};
use super::notice::Notice;
use super::placeholders::Placeholders;
use super::repositories::RepositoryCache;
use super::{SandboxRefusal, Tier, safe_open};
use crate::policy::{ReadScope, SandboxRules, Tmp};

/// What the system is made of, for those who may read only what is listed.
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

/// What of a new `/proc` is not the fence's own but the kernel's, and as root could be written by its owner.
const KERNEL: [&str; 4] = ["/proc/bus", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// How many entries of the user's home may be written.
const VISIBLE_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HiddenKind {
    Folder,
    File,
}

/// What was found. Paths of roots are real: without links, and none of them inside another that gives as much.
#[derive(Debug, Default)]
pub(super) struct RuleSet {
    /// Folders of the system, or where they link to.
    pub system: Vec<(PathBuf, Option<PathBuf>)>,
    /// Where services keep their sockets.
    pub run: Vec<PathBuf>,
    /// What of `/proc` only the kernel's owner may write.
    pub kernel: Vec<PathBuf>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// The roots with protected names, each by the file in which these were taken.
    pub roots: Vec<InodePin>,
    pub protected: Vec<PathBuf>,
    pub hidden: Vec<(PathBuf, HiddenKind)>,
    /// The file that names the resolvers, if it is where services keep theirs.
    pub resolver: Option<PathBuf>,
    /// Places that had to be made on the disk to be kept empty.
    pub placeholders: Placeholders,
    /// Roots in which not everything can be found or protected, which are only read.
    pub whole_roots: Vec<PathBuf>,
    /// What could not be protected, or only with more around it.
    pub notices: Vec<Notice>,
    pub budget: MountBudget,
    /// How much more may be looked at.
    pub survey_budget: SurveyBudget,
    /// The user's home.
    pub home: Option<PathBuf>,
}

impl RuleSet {
    /// Looks at the disk. `home` is the user's home, from whose dotfiles shells and other programs take orders.
    pub fn survey(
        rules: &SandboxRules,
        tier: Tier,
        cache: &RepositoryCache,
        home: Option<&Path>,
    ) -> Result<Self, SandboxRefusal> {
        // They are followed once: a command may put a link in place of one at any moment.
        let named = roots(&rules.write)?;
        let scratch = roots(&rules.scratch)?;
        let mut seen = Self {
            home: home.and_then(|it| fs::canonicalize(it).ok()),
            run: existing(&["/run", "/var/run"], is_folder),
            kernel: existing(&KERNEL, Path::exists),
            write: outermost([&named[..], &scratch[..]].concat()),
            ..Self::default()
        };
        let own = seen.open_home(tier)?;
        if let ReadScope::Listed(paths) = &rules.read {
            seen.read = real(paths)?;
            seen.system = SYSTEM
                .iter()
                .filter_map(|it| system(Path::new(it)))
                .collect();
            seen.hide(SECRETS.iter().map(Path::new))?;
        }
        if let Tmp::Folder(folder) = &rules.tmp
            && !is_folder(folder)
        {
            return Err(SandboxRefusal::Root {
                path: folder.clone(),
                why: "it is to be /tmp, but is no folder",
            });
        }
        absolute(&rules.hidden)?;
        seen.hide(rules.hidden.iter().map(PathBuf::as_path))?;
        seen.hide_around(&rules.settings)?;
        seen.resolver = fs::canonicalize("/etc/resolv.conf")
            .ok()
            .filter(|it| it.starts_with("/run"));
        if tier == Tier::A {
            // What is granted inside a protected name is granted whole.
            let is_inside = |root: &Path| {
                let below = named
                    .iter()
                    .filter_map(|outer| root.strip_prefix(outer).ok());
                let is_protected = |name: &OsStr| rules.protected.iter().any(|it| it == name);
                // A repository is protected at any depth, other names at the top.
                let is_kept = |(at, name): (usize, &OsStr)| {
                    is_protected(name) && (at == 0 || name == OsStr::new(".git"))
                };
                below
                    .into_iter()
                    .any(|rest| rest.iter().enumerate().any(is_kept))
            };
            for root in named.iter().filter(|root| !is_inside(root)) {
                if own.is_some() && own == seen.home && seen.home.as_ref() == Some(root) {
                    // Its protected names are dotfiles.
                    for folder in seen.write.clone().iter().filter(|it| it.starts_with(root)) {
                        seen.protect_git(folder, cache);
                    }
                } else {
                    seen.protect(root, rules, cache)?;
                }
            }
            if seen.survey_budget.is_spent() {
                // What was not looked at may name something in any of them.
                for root in named.iter().filter(|root| !is_inside(root)) {
                    seen.give_up(root, Notice::Costly(root.clone()));
                }
            }
            // What a rule lets be written by its own name was meant.
            seen.protected.retain(|it| !named.contains(it));
            let whole = std::mem::take(&mut seen.whole_roots);
            seen.write.retain(|it| !whole.contains(it));
            seen.protected.extend(whole.iter().cloned());
            seen.protected.extend(own.clone());
            let nested = named
                .into_iter()
                .filter(|it| !whole.contains(it) && own.as_ref() != Some(it))
                .filter(|it| seen.protected.iter().any(|kept| it.starts_with(kept)));
            seen.write.extend(nested);
        }
        Ok(seen)
    }

    /// The user's home, if it lies in what may be written. Then only what is visible in it may: neither its dotfiles
    /// nor its top, where a command could make one that is missing.
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
        let opened = open_root(root)?;
        let found = fstat(&opened).map_err(|source| SandboxRefusal::Disk {
            path: root.to_owned(),
            source: source.into(),
        })?;
        self.roots.push(InodePin::of(root, &found));
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return Ok(());
        }
        let around = Arc::new(opened);
        for name in &rules.protected {
            let path = root.join(name);
            match kind(&path)? {
                Kind::Link => return Err(SandboxRefusal::Link { path }),
                Kind::Missing | Kind::EmptyFolder => {
                    if self.placeholders.take_in(&around, &path)? {
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

    /// Leaves out what is protected as a part of a folder that is: a mount in one that cannot be entered would fail.
    pub fn drop_covered(&mut self) {
        let mut protected = std::mem::take(&mut self.protected);
        protected.sort();
        protected.dedup();
        // Whatever is below a path follows it.
        let mut around: Vec<PathBuf> = Vec::new();
        for path in protected {
            while around.pop_if(|it| !path.starts_with(it)).is_some() {}
            // A root between the two opens what is around it.
            let covers = |outer: &PathBuf| {
                let opens = |root: &PathBuf| root.starts_with(outer) && path.starts_with(root);
                !self.write.iter().any(opens)
            };
            if !around.iter().any(covers) {
                around.push(path.clone());
                self.protected.push(path);
            }
        }
    }

    /// The `.git` of a worktree is a file that says where the repository is, and that may say where its
    /// common part is. Either may lie where commands can write.
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
                // Nobody inside can make it.
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
        Ok(found) if found.is_symlink() => Ok(Kind::Link),
        Ok(found) if found.is_dir() => {
            // One that cannot be read is not ours, which are empty.
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

/// Opens a root, without a right to anything. A link in its place, or on the way to it, is an error.
fn open_root(root: &Path) -> Result<OwnedFd, SandboxRefusal> {
    safe_open::entry(root).map_err(|source| match source.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => became_link(root),
        _ => SandboxRefusal::Disk {
            path: root.to_owned(),
            source,
        },
    })
}

/// The roots that exist. Each must be a real path: a command of another thread could have put a link in its place, and
/// be given what it leads to.
fn roots(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxRefusal> {
    let mut found: Vec<PathBuf> = Vec::new();
    absolute(paths)?;
    for path in paths {
        match fs::canonicalize(path) {
            Ok(real) if real != *path => {
                let path = path.clone();
                return Err(SandboxRefusal::Moved { path, real });
            }
            Ok(real) => found.push(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(SandboxRefusal::Disk {
                    path: path.clone(),
                    source,
                });
            }
        }
    }
    if let Some(path) = found.iter().find(|it| it.parent().is_none()) {
        return Err(SandboxRefusal::Root {
            path: path.clone(),
            why: "it is the whole disk; name the folders that commands may write, or give full access",
        });
    }
    Ok(found)
}

/// Those of them that lie in no other.
fn outermost(mut roots: Vec<PathBuf>) -> Vec<PathBuf> {
    roots.sort();
    roots.dedup_by(|inner, outer| inner.starts_with(outer));
    roots
}

/// The real paths of those that exist.
fn real(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SandboxRefusal> {
    absolute(paths)?;
    Ok(paths
        .iter()
        .filter_map(|it| fs::canonicalize(it).ok())
        .collect())
}

fn absolute(paths: &[PathBuf]) -> Result<(), SandboxRefusal> {
    let plain =
        |it: &PathBuf| it.is_absolute() && !it.components().any(|it| it == Component::ParentDir);
    match paths.iter().find(|it| !plain(it)) {
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

/// A folder of the system, or the target if it is a link, as `/bin` often is.
fn system(path: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    let found = fs::symlink_metadata(path).ok()?;
    let target = if found.is_symlink() {
        Some(fs::read_link(path).ok()?)
    } else {
        None
    };
    Some((path.to_owned(), target))
}

/// The real path of what there is on the way to a path.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|it| fs::canonicalize(it).ok())
}

/// A link to a folder is none.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A sandboxed command of another thread may exchange a root after it was found, and exchange it back.
    #[test]
    fn protected_names_are_taken_in_the_folder_that_is_mounted() {
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
            let mut seen = RuleSet {
                write: roots(&rules.write).expect("it is there"),
                ..RuleSet::default()
            };
            if let Some(exchange) = exchange {
                fs::rename(&root, &away).expect("it is moved");
                exchange(&root).expect("something else is there");
            }
            let protected = seen.protect(&root, &rules, &RepositoryCache::default());
            assert_eq!(protected.is_err(), is_refused, "{name}: {protected:?}");
            let outside = fs::read_dir(base.join("outside")).expect("it is there");
            assert_eq!(outside.count(), 0, "{name}");
            if exchange.is_some() {
                let _ = fs::rename(&root, base.join("other"));
                fs::rename(&away, &root).expect("it is moved back");
            }
            // The helper closes the sandbox only around the folder whose names were taken.
            let is_same = seen.roots.iter().any(|it| it.open().is_ok());
            assert_eq!(is_same, exchange.is_none(), "{name}");
            assert_eq!(root.join(".git").exists(), is_same, "{name}");
        }
    }
}
