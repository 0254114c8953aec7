//! The walk over a workspace that finds what changed.
//!
//! The walk goes from folder to folder through open folders, so a folder that is swapped for a link
//! meanwhile cannot lead it outside. It looks at each entry once. A file whose stamp proves it
//! unchanged is not opened, and a folder in which nothing changed is the node of the last walk.
//!
//! A path that the last walk covered stays covered, as a tracked file of git does. So a new rule of
//! an ignore file hides no change of a file that was there before.

mod content;
mod folder_builder;
mod ignore_rules;
mod names;
mod revisit;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::fstat;
use rustix::io::Errno;

pub(crate) use ignore_rules::IgnoreFiles;
pub(crate) use names::{EntryNames, is_repository};

use crate::limits::{DEPTH_MAX, SnapshotLimits};
use crate::opened::{kind_of, open_folder, stat_entry};
use crate::path;
use crate::snapshot::{FolderNode, Item, Node, Stamp, now_ns};
use crate::store::{PackWriter, Store};
use crate::{ContentHash, EntryKind, Error, Gap, GapReason, WorkspacePath};
use folder_builder::FolderBuilder;
use ignore_rules::RuleStack;

/// How often an entry that changes while it is read is tried again.
const TRIES: usize = 3;

/// Which entries of a folder are covered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// Those that no ignore file excludes.
    Rules,
    /// Those that the last walk covered, named ones, and those that lead to a named one: the folder
    /// is ignored.
    KnownOnly,
    /// All: the folder, or one above it, was named.
    Everything,
}

/// Result of a walk. The contents are in the pack, if there are new ones.
pub(crate) struct ScanResult {
    pub root: Arc<FolderNode>,
    pub gaps: Vec<Gap>,
    pub pack: Option<PackWriter>,
    /// Number of files whose content was read.
    pub files_read: u64,
}

pub(crate) struct Scanner<'a> {
    store: &'a Store,
    limits: &'a SnapshotLimits,
    named: &'a BTreeSet<WorkspacePath>,
    rules: RuleStack<'a>,
    pack: Option<PackWriter>,
    gaps: Vec<Gap>,
    /// Path of the entry at which the walk is.
    path: Vec<u8>,
    depth: usize,
    device: u64,
    store_folder: (u64, u64),
    /// Before any entry was looked at.
    started_ns: i128,
    files: u64,
    bytes: u64,
    files_read: u64,
    buffer: Vec<u8>,
}

impl<'a> Scanner<'a> {
    pub fn new(
        store: &'a Store,
        store_folder: (u64, u64),
        limits: &'a SnapshotLimits,
        named: &'a BTreeSet<WorkspacePath>,
        ignore_files: &'a mut IgnoreFiles,
    ) -> Self {
        Self {
            store,
            limits,
            named,
            rules: RuleStack::new(ignore_files),
            pack: None,
            gaps: Vec::new(),
            path: Vec::new(),
            depth: 0,
            device: 0,
            store_folder,
            started_ns: now_ns(),
            files: 0,
            bytes: 0,
            files_read: 0,
            buffer: Vec::new(),
        }
    }

    /// Walks the whole workspace.
    pub fn scan(
        mut self,
        root: &OwnedFd,
        previous: Option<&Arc<FolderNode>>,
    ) -> Result<ScanResult, Error> {
        let at_root = |it| Error::disk(".".as_ref(), it);
        let opened = open_folder(root, b".").map_err(at_root)?;
        self.device = fstat(&opened).map_err(at_root)?.st_dev;
        let root = match self.folder(opened, previous, Coverage::Rules)? {
            Ok(root) => root,
            Err(error) => return Err(at_root(error)),
        };
        self.finish(root)
    }

    fn finish(self, root: Arc<FolderNode>) -> Result<ScanResult, Error> {
        Ok(ScanResult {
            root,
            gaps: self.gaps,
            pack: self.pack,
            files_read: self.files_read,
        })
    }

    /// Walks one folder. The inner error is one of the folder alone.
    fn folder(
        &mut self,
        opened: OwnedFd,
        previous: Option<&Arc<FolderNode>>,
        coverage: Coverage,
    ) -> Result<Result<Arc<FolderNode>, Errno>, Error> {
        let names = match EntryNames::read(&opened) {
            Ok(names) => names,
            Err(error) => return Ok(Err(error)),
        };
        let rules = self.rules.enter(&opened, &names, self.path.len());
        let mut builder = FolderBuilder::new(previous);
        for (name, kind) in names.iter() {
            if self.files >= self.limits.files_max {
                self.gap_here(GapReason::TooMany);
                break;
            }
            let length = self.path.len();
            path::push(&mut self.path, name);
            let visited = self.visit(&opened, name, kind, coverage, &mut builder);
            self.path.truncate(length);
            visited?;
        }
        self.rules.leave(rules);
        self.built(builder).map(Ok)
    }

    /// Looks at one entry, if it is covered.
    fn visit(
        &mut self,
        folder: impl AsFd,
        name: &[u8],
        kind: Option<EntryKind>,
        coverage: Coverage,
        builder: &mut FolderBuilder<'_>,
    ) -> Result<(), Error> {
        if is_repository(name) {
            self.gap_here(GapReason::Repository);
            return Ok(());
        }
        let is_folder = kind == Some(EntryKind::Folder);
        let inner = match coverage {
            Coverage::Everything => Coverage::Everything,
            Coverage::Rules if !self.rules.is_ignored(&self.path, is_folder) => Coverage::Rules,
            Coverage::Rules | Coverage::KnownOnly => {
                let here = WorkspacePath::from_walk(&self.path);
                let is_known = builder.previous(name).is_some();
                if is_named(self.named, &here) {
                    Coverage::Everything
                } else if is_known || is_folder && has_named_below(self.named, &here) {
                    Coverage::KnownOnly
                } else {
                    self.gap_here(GapReason::Ignored);
                    return Ok(());
                }
            }
        };
        self.entry(folder, name, inner, builder)
    }

    /// Adds the current state of one entry.
    fn entry(
        &mut self,
        folder: impl AsFd,
        name: &[u8],
        coverage: Coverage,
        builder: &mut FolderBuilder<'_>,
    ) -> Result<(), Error> {
        let folder = folder.as_fd();
        for _ in 0..TRIES {
            let stat = match stat_entry(folder, name) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => return Ok(()),
                Err(_) => {
                    self.gap_here(GapReason::Unreadable);
                    return Ok(());
                }
            };
            let Some(kind) = kind_of(&stat) else {
                self.gap_here(GapReason::Special);
                return Ok(());
            };
            if stat.st_dev != self.device {
                self.gap_here(GapReason::OtherFileSystem);
                return Ok(());
            }
            let previous = builder.previous(name);
            let mode = stat.st_mode & 0o777;
            if kind == EntryKind::Folder {
                if (stat.st_dev, stat.st_ino) == self.store_folder {
                    self.gap_here(GapReason::Store);
                    return Ok(());
                }
                if self.depth >= DEPTH_MAX {
                    self.gap_here(GapReason::TooDeep);
                    return Ok(());
                }
                let before = match previous.map(|it| &builder.item(it).node) {
                    Some(Node::Folder { folder, .. }) => Some(Arc::clone(folder)),
                    _ => None,
                };
                self.depth += 1;
                let walked = match open_folder(folder, name) {
                    Ok(opened) => self.folder(opened, before.as_ref(), coverage),
                    Err(error) => Ok(Err(error)),
                };
                self.depth -= 1;
                match walked? {
                    Ok(now) => {
                        let stamp = Stamp::new(&stat, self.started_ns);
                        builder.add_folder(name, previous, mode, stamp, now);
                        return Ok(());
                    }
                    // Another entry took its place.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                    Err(_) => {
                        self.gap_here(GapReason::Unreadable);
                        return Ok(());
                    }
                }
            }
            let stamp = Stamp::new(&stat, self.started_ns);
            if let Some(at) = previous
                && let Node::Leaf(known) = builder.item(at).node
                && builder.item(at).stamp.proves_unchanged(&stamp)
            {
                if self.has_capacity(known.size) {
                    self.count(known.size);
                    builder.add_unchanged(at);
                }
                return Ok(());
            }
            if !self.has_capacity(stamp.size) {
                return Ok(());
            }
            match self.leaf(folder, name, kind)? {
                Ok((entry, stamp)) => {
                    self.count(entry.size);
                    self.files_read += 1;
                    builder.add(Item {
                        name: name.into(),
                        node: Node::Leaf(entry),
                        stamp,
                    });
                    return Ok(());
                }
                Err(content::Unread::Vanished | content::Unread::Replaced) => {}
                Err(content::Unread::Gap(reason)) => {
                    self.gap_here(reason);
                    return Ok(());
                }
            }
        }
        self.gap_here(GapReason::Unreadable);
        Ok(())
    }

    /// Reports whether a file of this size may be covered, and notes a gap if not.
    fn has_capacity(&mut self, size: u64) -> bool {
        let reason = if size > self.limits.file_bytes_max {
            GapReason::TooLarge
        } else if self.bytes.saturating_add(size) > self.limits.bytes_max {
            GapReason::TooMany
        } else {
            return true;
        };
        self.gap_here(reason);
        false
    }

    fn count(&mut self, size: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(size);
    }

    fn gap_here(&mut self, reason: GapReason) {
        let is_root = self.path.is_empty();
        let path = (!is_root).then(|| WorkspacePath::from_walk(&self.path));
        self.gaps.push(Gap { path, reason });
    }

    /// Completes a folder and stores it if it is new.
    fn built(&mut self, builder: FolderBuilder<'_>) -> Result<Arc<FolderNode>, Error> {
        let (node, encoded) = match builder.finish() {
            Ok(unchanged) => return Ok(unchanged),
            Err(items) => FolderNode::new(items),
        };
        self.put(node.hash, &encoded)?;
        Ok(Arc::new(node))
    }

    fn put(&mut self, hash: ContentHash, content: &[u8]) -> Result<(), Error> {
        if self.store.contains(&hash) {
            return Ok(());
        }
        let pack = self.pack()?;
        match pack.contains(&hash) {
            true => Ok(()),
            false => pack.put(hash, content),
        }
    }

    fn pack(&mut self) -> Result<&mut PackWriter, Error> {
        let pack = match self.pack.take() {
            Some(pack) => pack,
            None => self.store.writer()?,
        };
        Ok(self.pack.insert(pack))
    }
}

/// Reports whether a path, or a folder that contains it, was named.
fn is_named(named: &BTreeSet<WorkspacePath>, path: &WorkspacePath) -> bool {
    !named.is_empty()
        && std::iter::successors(Some(path.clone()), WorkspacePath::parent)
            .any(|it| named.contains(&it))
}

/// Reports whether a path in this folder was named.
fn has_named_below(named: &BTreeSet<WorkspacePath>, folder: &WorkspacePath) -> bool {
    let mut start = folder.as_bytes().to_vec();
    start.push(b'/');
    let start = WorkspacePath::from_walk(&start);
    named
        .range(start..)
        .next()
        .is_some_and(|it| it.is_within(folder))
}
