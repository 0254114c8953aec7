//! The state of a workspace at one time.

mod codec;
mod composition;
mod stamp;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

pub(crate) use codec::{
    SnapshotRecord, decode_cache, decode_folder, decode_gaps, decode_names, decode_record,
    encode_cache, encode_folder, encode_gaps, encode_record,
};
pub(crate) use stamp::{Stamp, Trust, now_ns};

use crate::diff::{PathChange, compare};
use crate::path::is_within;
use crate::{ContentHash, WorkspacePath};

/// Name of a snapshot: the hash of its content, so equal snapshots have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub ContentHash);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link; its content is its target.
    Symlink,
    /// A folder; it has no content of its own.
    Folder,
}

/// Kind, mode and content of a path. It says nothing of times, owners or extended attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileEntry {
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Permission bits below `0o777`; zero for a symbolic link.
    pub mode: u32,
    /// Length of the content in bytes; zero for a folder.
    pub size: u64,
    /// Hash of the content; of a folder, of nothing.
    pub hash: ContentHash,
}

impl FileEntry {
    /// Returns the entry if it is a file or a link. Folders come and go with what is in them.
    pub fn leaf(self) -> Option<Self> {
        (self.kind != EntryKind::Folder).then_some(self)
    }
}

/// A path that the snapshot does not cover. Changes of it, and of what it contains, do not show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gap {
    /// The file or folder; `None` is the whole workspace.
    pub path: Option<WorkspacePath>,
    /// Why it is not covered.
    pub reason: GapReason,
}

/// Reason why a path is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GapReason {
    /// An ignore file excludes it, and no caller named it.
    Ignored,
    /// Data of a repository: an entry named `.git`.
    Repository,
    /// The store of snapshots itself.
    Store,
    /// A pipe, a socket or a device.
    Special,
    /// Another file system is mounted there.
    OtherFileSystem,
    /// The file may not be read, or the disk failed.
    Unreadable,
    /// The file has more bytes than the limit of one file.
    TooLarge,
    /// The limit of all files, by count or by bytes, was reached before.
    TooMany,
    /// Folders are nested beyond the limit.
    TooDeep,
    /// No snapshot has looked at it yet.
    NotVisited,
}

/// The state of a workspace at one time. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) id: SnapshotId,
    pub(crate) root: Arc<FolderNode>,
    pub(crate) gaps: Arc<[Gap]>,
    /// Hash of the encoded gaps, by which the store has them.
    pub(crate) gaps_hash: ContentHash,
    pub(crate) named: Arc<BTreeSet<WorkspacePath>>,
}

impl Snapshot {
    pub(crate) fn new(
        root: Arc<FolderNode>,
        mut gaps: Vec<Gap>,
        named: BTreeSet<WorkspacePath>,
    ) -> Self {
        gaps.sort();
        gaps.dedup();
        let gaps_hash = ContentHash::of(&encode_gaps(&gaps));
        let record = encode_record(root.hash, gaps_hash, &named);
        Self {
            id: SnapshotId(ContentHash::of(&record)),
            root,
            gaps: gaps.into(),
            gaps_hash,
            named: Arc::new(named),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        encode_record(self.root.hash, self.gaps_hash, &self.named)
    }

    /// Returns the name under which the store finds the snapshot again.
    pub fn id(&self) -> SnapshotId {
        self.id
    }

    /// Returns what the snapshot does not cover, and why.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Returns the paths that callers named, which are covered although ignored.
    pub fn named(&self) -> &BTreeSet<WorkspacePath> {
        &self.named
    }

    /// Returns the entry of a path, if it existed and was covered.
    pub fn entry(&self, path: &WorkspacePath) -> Option<FileEntry> {
        let mut folder = &self.root;
        let mut components = path.components().peekable();
        while let Some(name) = components.next() {
            let item = folder.item(name)?;
            match (&item.node, components.peek()) {
                (_, None) => return Some(item.entry()),
                (Node::Folder { folder: inner, .. }, Some(_)) => folder = inner,
                (Node::Leaf(_), Some(_)) => return None,
            }
        }
        None
    }

    /// Reports whether the snapshot knows the state of a path, absent or not.
    pub fn covers(&self, path: &WorkspacePath) -> bool {
        if self.entry(path).is_some() {
            return true;
        }
        // A look at a named path is also one at each folder above it: this one was absent then.
        let is_named = || {
            let above = std::iter::successors(Some(path.clone()), WorkspacePath::parent);
            // Everything in a folder follows its path with a slash at the end.
            let mut within = self.named.range(WorkspacePath::join(Some(path), b"")..);
            above.into_iter().any(|it| self.named.contains(&it))
                || within.next().is_some_and(|it| it.is_within(path))
        };
        let mut gaps = self.gaps.iter().filter(|gap| {
            let within = |it: &WorkspacePath| is_within(path.as_bytes(), it.as_bytes());
            gap.path.as_ref().is_none_or(within)
        });
        // A named path is read although ignored, but not what cannot be read.
        let is_passed_over =
            |it: GapReason| matches!(it, GapReason::Ignored | GapReason::NotVisited);
        gaps.all(|it| is_passed_over(it.reason) && is_named())
    }

    /// Returns the files and links that differ in a later snapshot, sorted by path. Paths that one of
    /// the two does not cover are left out.
    pub fn changes(&self, later: &Self) -> Vec<PathChange> {
        let mut changes = compare::leaves(&self.root, &later.root);
        changes.retain(|it| self.covers(&it.path) && later.covers(&it.path));
        changes
    }

    /// Returns when a file or a link got its content or its place here, compared with an earlier
    /// snapshot; `None` if that is not known, as in a snapshot that was loaded or composed.
    ///
    /// A file in a folder that was moved keeps its own times, so those of folders that were not in
    /// this place before count too.
    pub fn arrived_at(&self, path: &WorkspacePath, earlier: &Self) -> Option<SystemTime> {
        let (mut folder, mut before) = (&self.root, Some(&earlier.root));
        let mut at = None;
        for name in path.components() {
            let item = folder.item(name)?;
            let known = before.and_then(|it| it.item(name));
            match &item.node {
                Node::Leaf(_) => return at.max(item.stamp.changed_at()),
                Node::Folder { folder: inner, .. } => {
                    if !known.is_some_and(|it| it.stamp.is_same_inode(&item.stamp)) {
                        at = at.max(item.stamp.changed_at());
                    }
                    folder = inner;
                }
            }
            before = match known.map(|it| &it.node) {
                Some(Node::Folder { folder, .. }) => Some(folder),
                _ => None,
            };
        }
        None
    }

    /// Returns the paths of everything in a folder; nothing if the path is no folder.
    pub(crate) fn entries_in(&self, path: &WorkspacePath) -> Vec<WorkspacePath> {
        let mut folder = &self.root;
        for name in path.components() {
            match folder.item(name).map(|it| &it.node) {
                Some(Node::Folder { folder: inner, .. }) => folder = inner,
                _ => return Vec::new(),
            }
        }
        let mut entries = Vec::new();
        folder.collect(Some(path), &mut entries);
        entries.into_iter().map(|(path, _)| path).collect()
    }

    /// Returns all entries in the order of their names, a folder before its content.
    pub fn entries(&self) -> Vec<(WorkspacePath, FileEntry)> {
        let mut entries = Vec::new();
        self.root.collect(None, &mut entries);
        entries
    }
}

/// A folder with its entries sorted by name. Unchanged folders of two snapshots are one node.
#[derive(Debug)]
pub(crate) struct FolderNode {
    pub items: Vec<Item>,
    /// Hash of the encoded folder, by which the store has it.
    pub hash: ContentHash,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub name: Box<[u8]>,
    pub node: Node,
    /// When the entry was read, and whether its content may be believed from then on.
    pub stamp: Stamp,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A file or a symbolic link.
    Leaf(FileEntry),
    Folder {
        mode: u32,
        folder: Arc<FolderNode>,
    },
}

impl Item {
    pub fn entry(&self) -> FileEntry {
        match &self.node {
            Node::Leaf(entry) => *entry,
            Node::Folder { mode, .. } => FileEntry {
                kind: EntryKind::Folder,
                mode: *mode,
                size: 0,
                hash: ContentHash::of(b""),
            },
        }
    }
}

impl FolderNode {
    pub fn new(items: Vec<Item>) -> (Self, Vec<u8>) {
        let encoded = encode_folder(&items);
        let hash = ContentHash::of(&encoded);
        (Self { items, hash }, encoded)
    }

    pub fn item(&self, name: &[u8]) -> Option<&Item> {
        let at = self.items.binary_search_by(|it| (*it.name).cmp(name));
        at.ok().map(|it| &self.items[it])
    }

    pub fn collect(
        &self,
        path: Option<&WorkspacePath>,
        entries: &mut Vec<(WorkspacePath, FileEntry)>,
    ) {
        for item in &self.items {
            let path = WorkspacePath::join(path, &item.name);
            entries.push((path.clone(), item.entry()));
            if let Node::Folder { folder, .. } = &item.node {
                folder.collect(Some(&path), entries);
            }
        }
    }
}
