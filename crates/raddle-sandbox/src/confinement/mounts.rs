//! The view of the disk inside the first tier, and how bubblewrap is told of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::SandboxRefusal;
use super::inode_pins::InodePin;
use super::survey::{HiddenKind, RuleSet};
use crate::policy::{Network, ReadScope, SandboxRules, Tmp};

/// Where the helper stands inside.
pub(super) const HELPER: &str = "/run/raddle-fence";

/// Where the way to the proxy stands inside, if there is one.
pub(super) const OUT: &str = "/run/raddle-out";

/// How large `/tmp` can grow when it is the command's own; it is memory.
const TMP_BYTES_MAX: u64 = 1 << 30;

/// What is at a path inside.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mount {
    /// This path of the host, for reading.
    Read(PathBuf),
    /// This path of the host, for writing.
    Write(PathBuf),
    /// A link with this target.
    Link(PathBuf),
    /// An empty folder that cannot be written.
    Empty,
    /// A file that cannot be opened.
    Shut,
    /// An empty folder that can be written.
    Scratch,
    Devices,
    Processes,
}

/// What is where inside. A folder comes before what is in it, and the deeper one counts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mounts(BTreeMap<PathBuf, Mount>);

impl Mounts {
    /// Later lines win where two name the same path.
    pub fn new(rules: &SandboxRules, seen: &RuleSet, helper: &Path) -> Self {
        let mut mounts = BTreeMap::new();
        let mut at = |path: &Path, mount: Mount| {
            mounts.insert(path.to_owned(), mount);
        };
        match rules.read {
            ReadScope::All => at(Path::new("/"), Mount::Read("/".into())),
            ReadScope::Listed(_) => at(Path::new("/"), Mount::Empty),
        }
        for (path, target) in &seen.system {
            match target {
                Some(target) => at(path, Mount::Link(target.clone())),
                None => at(path, Mount::Read(path.clone())),
            }
        }
        at(Path::new("/dev"), Mount::Devices);
        at(Path::new("/proc"), Mount::Processes);
        for path in &seen.kernel {
            at(path, Mount::Read(path.clone()));
        }
        for path in &seen.run {
            at(path, Mount::Empty);
        }
        match &rules.tmp {
            Tmp::Plain => {}
            Tmp::Private => at(Path::new("/tmp"), Mount::Scratch),
            Tmp::Folder(folder) => at(Path::new("/tmp"), Mount::Write(folder.clone())),
        }
        for path in &seen.read {
            at(path, Mount::Read(path.clone()));
        }
        for path in &seen.protected {
            at(path, Mount::Read(path.clone()));
        }
        for path in &seen.write {
            at(path, Mount::Write(path.clone()));
        }
        for (path, hidden) in &seen.hidden {
            let mount = match hidden {
                HiddenKind::Folder => Mount::Empty,
                HiddenKind::File => Mount::Shut,
            };
            at(path, mount);
        }
        match (&rules.network, &seen.resolver) {
            (Network::Open, Some(path)) => at(path, Mount::Read(path.clone())),
            (Network::Proxy(socket), _) => at(Path::new(OUT), Mount::Read(socket.clone())),
            _ => {}
        }
        at(Path::new(HELPER), Mount::Read(helper.to_owned()));
        let mut mounts = Self(mounts);
        let hidden = seen.hidden.iter().map(|(path, _)| path);
        for path in seen.protected.iter().chain(hidden) {
            mounts.pin(path);
        }
        mounts
    }

    /// A folder that something is mounted in could still be moved away, and another put in its place: what is
    /// mounted itself cannot be moved, so every writable folder on the way is mounted on itself.
    fn pin(&mut self, path: &Path) {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for folder in above.into_iter().rev() {
            let around = folder.ancestors().find_map(|it| self.0.get(it));
            if matches!(around, Some(Mount::Write(from)) if folder.starts_with(from)) {
                let mount = Mount::Write(folder.to_owned());
                self.0.entry(folder.to_owned()).or_insert(mount);
            }
        }
    }

    /// Whether this path of the host is the same path inside.
    pub fn shows(&self, path: &Path) -> bool {
        let found = path.ancestors().find_map(|it| Some((it, self.0.get(it)?)));
        match found {
            Some((at, Mount::Read(from) | Mount::Write(from))) => at == from,
            Some((_, Mount::Devices | Mount::Processes)) => true,
            Some((at, Mount::Scratch | Mount::Empty)) => at == path,
            Some((_, Mount::Link(_) | Mount::Shut)) | None => false,
        }
    }

    /// What can be written inside.
    pub fn writable(&self) -> Vec<PathBuf> {
        let writable = |mount: &Mount| matches!(mount, Mount::Write(_) | Mount::Scratch);
        self.0
            .iter()
            .filter(|(_, mount)| writable(mount))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// What is mounted where others may write, and so could be exchanged: what can be written, and what is
    /// protected in it. A root is the file in which its protected names were taken.
    pub fn inode_pins(&self, seen: &RuleSet) -> Result<Vec<InodePin>, SandboxRefusal> {
        let protected: BTreeSet<&PathBuf> = seen.protected.iter().collect();
        let place = |path: &PathBuf, from: &PathBuf| {
            let root = seen.roots.iter().find(|it| it.path == *path);
            match root.filter(|_| path == from) {
                Some(root) => Ok(root.clone()),
                None => InodePin::new(path, from),
            }
        };
        let mounts = self.0.iter();
        let places = mounts.filter_map(|(path, mount)| match mount {
            Mount::Write(from) => Some(place(path, from)),
            Mount::Read(from) if protected.contains(path) => Some(place(path, from)),
            _ => None,
        });
        places.collect()
    }

    /// The words for bubblewrap.
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut say = |all: &[&OsStr]| words.extend(all.iter().map(|it| (*it).to_owned()));
        let w = OsStr::new;
        for (path, mount) in &self.0 {
            let path = path.as_os_str();
            match mount {
                Mount::Read(from) => say(&[w("--ro-bind"), from.as_os_str(), path]),
                Mount::Write(from) => say(&[w("--bind"), from.as_os_str(), path]),
                Mount::Link(target) => say(&[w("--symlink"), target.as_os_str(), path]),
                // The root is there from the beginning.
                Mount::Empty if path == "/" => {}
                Mount::Empty => say(&[w("--perms"), w("0555"), w("--tmpfs"), path]),
                Mount::Shut => say(&[w("--ro-bind"), w("/dev/null"), path]),
                Mount::Scratch => {
                    let size = TMP_BYTES_MAX.to_string();
                    say(&[
                        w("--size"),
                        size.as_ref(),
                        w("--perms"),
                        w("1777"),
                        w("--tmpfs"),
                        path,
                    ]);
                }
                Mount::Devices => say(&[w("--dev"), path]),
                Mount::Processes => say(&[w("--proc"), path]),
            }
        }
        // Only now, because the places of what is mounted inside them had to be made.
        for (path, mount) in &self.0 {
            if *mount == Mount::Empty {
                say(&[w("--remount-ro"), path.as_os_str()]);
            }
        }
        words
    }
}

#[cfg(test)]
#[path = "mounts/tests.rs"]
mod tests;
