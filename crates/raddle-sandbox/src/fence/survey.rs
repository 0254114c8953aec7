//! What of the rules is on the disk: which roots there are, what must be kept from changing, what hides.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::points::Points;
use super::{Refused, Tier};
use crate::policy::{Read, Rules, Tmp};

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

/// How many entries of a root are looked at for repositories.
const ENTRIES_MAX: usize = 100_000;
/// What is read of a file that says where a repository is.
const GITDIR_BYTES_MAX: u64 = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    Folder,
    File,
}

/// What was found. Paths of roots are real: without links, and none of them inside another that gives as much.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Folders of the system, or where they link to.
    pub system: Vec<(PathBuf, Option<PathBuf>)>,
    /// Where services keep their sockets.
    pub run: Vec<PathBuf>,
    /// What of `/proc` only the kernel's owner may write.
    pub kernel: Vec<PathBuf>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub protected: Vec<PathBuf>,
    pub hidden: Vec<(PathBuf, Hidden)>,
    /// The file that names the resolvers, if it is where services keep theirs.
    pub resolver: Option<PathBuf>,
    /// Places that had to be made on the disk to be kept empty.
    pub points: Points,
}

impl Seen {
    pub fn look(rules: &Rules, tier: Tier) -> Result<Self, Refused> {
        let mut seen = Self {
            run: existing(&["/run", "/var/run"], is_folder),
            kernel: existing(&KERNEL, Path::exists),
            write: roots(&[&rules.write[..], &rules.scratch[..]].concat())?,
            ..Self::default()
        };
        if let Read::Listed(paths) = &rules.read {
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
            return Err(Refused::Root {
                path: folder.clone(),
                why: "it is to be /tmp, but is no folder",
            });
        }
        absolute(&rules.hidden)?;
        seen.hide(rules.hidden.iter().map(PathBuf::as_path))?;
        seen.resolver = fs::canonicalize("/etc/resolv.conf")
            .ok()
            .filter(|it| it.starts_with("/run"));
        if tier == Tier::A {
            // Also those that lie inside others.
            let named = real(&rules.write)?;
            // What is granted inside a protected name is granted whole.
            let is_inside = |root: &Path| {
                let below = named
                    .iter()
                    .filter_map(|outer| root.strip_prefix(outer).ok());
                let firsts = below.filter_map(|rest| rest.components().next());
                let mut firsts = firsts.map(|it| it.as_os_str());
                firsts.any(|first| rules.protected.iter().any(|name| name == first))
            };
            for root in named.iter().filter(|root| !is_inside(root)) {
                seen.protect(root, rules)?;
            }
            // What a rule lets be written by its own name was meant.
            seen.protected.retain(|it| !named.contains(it));
            let nested = named
                .into_iter()
                .filter(|it| seen.protected.iter().any(|kept| it.starts_with(kept)));
            seen.write.extend(nested);
        }
        Ok(seen)
    }

    fn protect(&mut self, root: &Path, rules: &Rules) -> Result<(), Refused> {
        if !is_folder(root) {
            return Ok(());
        }
        for name in &rules.protected {
            let path = root.join(name);
            match kind(&path)? {
                Kind::Link => return Err(Refused::Link { path }),
                Kind::Missing | Kind::EmptyFolder => {
                    if self.points.take(&path)? {
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
            self.protect_nested(root)?;
        }
        Ok(())
    }

    /// The `.git` of a worktree is a file that says where the repository is, and that may say where its
    /// common part is. Either may lie where commands can write.
    fn protect_elsewhere(&mut self, root: &Path, dot_git: &Path) -> Result<(), Refused> {
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
                    return Err(Refused::Lost { path });
                }
                // Nobody inside can make it.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Repositories one level down: packages of a workspace, submodules.
    fn protect_nested(&mut self, root: &Path) -> Result<(), Refused> {
        let entries = fs::read_dir(root).map_err(|source| Refused::Disk {
            path: root.to_owned(),
            source,
        })?;
        for (count, entry) in entries.flatten().enumerate() {
            if count == ENTRIES_MAX {
                let why = "it has too many entries to look for the repositories among them";
                return Err(Refused::Root {
                    path: root.to_owned(),
                    why,
                });
            }
            if !entry.file_type().is_ok_and(|it| it.is_dir()) {
                continue;
            }
            let path = entry.path().join(".git");
            match kind(&path)? {
                Kind::Missing => {}
                Kind::Link => return Err(Refused::Link { path }),
                Kind::EmptyFolder => self.protected.push(path),
                Kind::Other => {
                    match self.protect_elsewhere(&entry.path(), &path) {
                        // Whoever can make what it names could also have made this.
                        Ok(()) | Err(Refused::Lost { .. }) => {}
                        Err(refused) => return Err(refused),
                    }
                    self.protected.push(path);
                }
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

fn kind(path: &Path) -> Result<Kind, Refused> {
    let disk = |source| Refused::Disk {
        path: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::Missing),
        Err(error) => Err(disk(error)),
        Ok(found) if found.is_symlink() => Ok(Kind::Link),
        Ok(found) if found.is_dir() => {
            let is_empty = fs::read_dir(path).map_err(disk)?.next().is_none();
            Ok(if is_empty {
                Kind::EmptyFolder
            } else {
                Kind::Other
            })
        }
        Ok(_) => Ok(Kind::Other),
    }
}

/// The real paths of the roots. One that lies inside another must really lie there: a command that can write
/// the outer one could have put a link in its place, and be given what it links to.
fn roots(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Refused> {
    let mut found: Vec<(&PathBuf, PathBuf)> = Vec::new();
    absolute(paths)?;
    for path in paths {
        match fs::canonicalize(path) {
            Ok(real) => found.push((path, real)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(Refused::Disk {
                    path: path.clone(),
                    source,
                });
            }
        }
    }
    for (path, real) in &found {
        let moved = found.iter().any(|(outer, outer_real)| {
            let mut names = [outer.as_path(), outer_real.as_path()].into_iter();
            names.any(|name| {
                let below = path.strip_prefix(name);
                below.is_ok_and(|below| *real != outer_real.join(below))
            })
        });
        if moved {
            let why = "a link in the writable folder around it leads it elsewhere";
            return Err(Refused::Root {
                path: (*path).clone(),
                why,
            });
        }
    }
    let mut real: Vec<PathBuf> = found.into_iter().map(|(_, real)| real).collect();
    real.sort();
    real.dedup_by(|inner, outer| inner.starts_with(outer));
    Ok(real)
}

/// The real paths of those that exist.
fn real(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Refused> {
    absolute(paths)?;
    Ok(paths
        .iter()
        .filter_map(|it| fs::canonicalize(it).ok())
        .collect())
}

fn absolute(paths: &[PathBuf]) -> Result<(), Refused> {
    let plain =
        |it: &PathBuf| it.is_absolute() && !it.components().any(|it| it == Component::ParentDir);
    match paths.iter().find(|it| !plain(it)) {
        Some(path) => Err(Refused::Root {
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

/// The path that the first line of a small file names, after a word; relative to a folder.
fn named_in(file: &Path, word: &str, folder: &Path) -> Option<PathBuf> {
    if !fs::symlink_metadata(file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    fs::File::open(file)
        .ok()?
        .take(GITDIR_BYTES_MAX)
        .read_to_end(&mut bytes)
        .ok()?;
    let line = bytes.split(|it| *it == b'\n').next()?;
    let path = line.strip_prefix(word.as_bytes())?.trim_ascii();
    (!path.is_empty()).then(|| folder.join(OsStr::from_bytes(path)))
}

/// The real path of what there is on the way to a path.
fn nearest(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|it| fs::canonicalize(it).ok())
}

/// A link to a folder is none.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_dir())
}
