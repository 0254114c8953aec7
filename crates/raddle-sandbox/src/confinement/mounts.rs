//! The mounts inside the first tier, as the rules and the disk determine them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::SandboxRefusal;
use super::inode_pins::InodePin;
use super::survey::{HiddenKind, RuleSet};
use crate::policy::{Network, ReadScope, SandboxRules, Tmp};

/// Path of the helper inside the sandbox.
pub(super) const HELPER: &str = "/run/raddle-sandbox";

/// Path of the proxy's socket inside the sandbox, if the rules have a proxy.
pub(super) const PROXY_SOCKET: &str = "/run/raddle-out";

/// Content of a path inside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mount {
    /// This path of the host, for reading.
    Read(PathBuf),
    /// This path of the host, for writing.
    Write(PathBuf),
    /// A link with this target.
    Link(PathBuf),
    /// An empty folder that cannot be written.
    Empty,
    /// A file that cannot be opened.
    HiddenFile,
    /// An empty folder that can be written.
    Scratch,
    Devices,
    Processes,
}

/// The mounts inside the sandbox, by path. A folder comes before its contents, and the deeper mount
/// wins.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mounts(BTreeMap<PathBuf, Mount>);

impl Mounts {
    /// Builds the mounts. Later statements win where two name the same path.
    pub fn new(rules: &SandboxRules, rule_set: &RuleSet, helper: &Path) -> Self {
        let mut mounts = BTreeMap::new();
        let mut mount_at = |path: &Path, mount: Mount| {
            mounts.insert(path.to_owned(), mount);
        };
        match rules.read {
            ReadScope::All => mount_at(Path::new("/"), Mount::Read("/".into())),
            ReadScope::Listed(_) => mount_at(Path::new("/"), Mount::Empty),
        }
        for (path, target) in &rule_set.system {
            match target {
                Some(target) => mount_at(path, Mount::Link(target.clone())),
                None => mount_at(path, Mount::Read(path.clone())),
            }
        }
        mount_at(Path::new("/dev"), Mount::Devices);
        mount_at(Path::new("/proc"), Mount::Processes);
        for path in &rule_set.kernel {
            mount_at(path, Mount::Read(path.clone()));
        }
        for path in &rule_set.run {
            mount_at(path, Mount::Empty);
        }
        match &rules.tmp {
            Tmp::Plain => {}
            Tmp::Private => mount_at(Path::new("/tmp"), Mount::Scratch),
            Tmp::Folder(folder) => mount_at(Path::new("/tmp"), Mount::Write(folder.clone())),
        }
        for path in &rule_set.read {
            mount_at(path, Mount::Read(path.clone()));
        }
        for path in &rule_set.protected {
            mount_at(path, Mount::Read(path.clone()));
        }
        for path in &rule_set.write {
            mount_at(path, Mount::Write(path.clone()));
        }
        for (path, hidden) in &rule_set.hidden {
            let mount = match hidden {
                HiddenKind::Folder => Mount::Empty,
                HiddenKind::File => Mount::HiddenFile,
            };
            mount_at(path, mount);
        }
        match (&rules.network, &rule_set.resolver) {
            (Network::Open, Some(path)) => mount_at(path, Mount::Read(path.clone())),
            (Network::Proxy(socket), _) => {
                mount_at(Path::new(PROXY_SOCKET), Mount::Read(socket.clone()))
            }
            _ => {}
        }
        mount_at(Path::new(HELPER), Mount::Read(helper.to_owned()));
        let mut mounts = Self(mounts);
        let hidden = rule_set.hidden.iter().map(|(path, _)| path);
        for path in rule_set.protected.iter().chain(hidden) {
            mounts.pin(path);
        }
        mounts
    }

    /// Mounts every writable folder above `path` on itself. A folder that contains a mount could
    /// still be moved away and replaced; a mount point cannot be moved.
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

    /// Returns each path inside the sandbox with its mount. A folder comes before its contents.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Mount)> {
        self.0.iter().map(|(path, mount)| (path.as_path(), mount))
    }

    /// Returns whether this path of the host is the same path inside.
    pub fn shows(&self, path: &Path) -> bool {
        let mount = path.ancestors().find_map(|it| Some((it, self.0.get(it)?)));
        match mount {
            Some((at, Mount::Read(from) | Mount::Write(from))) => at == from,
            Some((_, Mount::Devices | Mount::Processes)) => true,
            Some((at, Mount::Scratch | Mount::Empty)) => at == path,
            Some((_, Mount::Link(_) | Mount::HiddenFile)) | None => false,
        }
    }

    /// Returns the paths that are writable inside.
    pub fn writable(&self) -> Vec<PathBuf> {
        let writable = |mount: &Mount| matches!(mount, Mount::Write(_) | Mount::Scratch);
        self.0
            .iter()
            .filter(|(_, mount)| writable(mount))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Returns pins for the mounts that another command could replace: the writable paths, and the
    /// protected ones in them. The pin of a root is the inode in which its protected names were
    /// created.
    pub fn inode_pins(&self, rule_set: &RuleSet) -> Result<Vec<InodePin>, SandboxRefusal> {
        let protected: BTreeSet<&PathBuf> = rule_set.protected.iter().collect();
        let pin = |path: &PathBuf, from: &PathBuf| {
            let root = rule_set.roots.iter().find(|it| it.path == *path);
            match root.filter(|_| path == from) {
                Some(root) => Ok(root.clone()),
                None => InodePin::new(path, from),
            }
        };
        let mounts = self.0.iter();
        let pins = mounts.filter_map(|(path, mount)| match mount {
            Mount::Write(from) => Some(pin(path, from)),
            Mount::Read(from) if protected.contains(path) => Some(pin(path, from)),
            _ => None,
        });
        pins.collect()
    }
}

#[cfg(test)]
#[path = "mounts/tests.rs"]
mod tests;
