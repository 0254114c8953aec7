//! The stored forms of a folder, of a snapshot, and of the cache of stamps.
//!
//! Integers are little-endian. A name is preceded by its length. Everything read is checked: a
//! damaged form is `None`, never a panic.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{EntryKind, FileEntry, FolderNode, Gap, GapReason, Item, Node, Stamp, Trust};
use crate::{ContentHash, WorkspacePath};

/// First bytes of a snapshot. The last is the version of the form.
const RECORD: &[u8] = b"raddle snapshot 2\n";

/// First bytes of the cache of stamps.
const CACHE: &[u8] = b"raddle stamps 1\n";

/// Folders deeper than this are not read, so that a damaged form cannot exhaust the stack.
const DEPTH_MAX: usize = 1_000;

const REASONS: [GapReason; 10] = [
    GapReason::Ignored,
    GapReason::Repository,
    GapReason::Special,
    GapReason::OtherFileSystem,
    GapReason::Unreadable,
    GapReason::TooLarge,
    GapReason::TooMany,
    GapReason::TooDeep,
    GapReason::Store,
    GapReason::NotVisited,
];

pub(crate) fn encode_folder(items: &[Item]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(items.len() * 64);
    for item in items {
        put_item(&mut bytes, item);
    }
    bytes
}

fn put_item(bytes: &mut Vec<u8>, item: &Item) {
    let (kind, mode, size, hash) = match &item.node {
        Node::Leaf(it) => (
            u8::from(it.kind == EntryKind::Symlink),
            it.mode,
            it.size,
            it.hash,
        ),
        Node::Folder { mode, folder } => (2, *mode, 0, folder.hash),
    };
    bytes.push(kind);
    bytes.extend(mode.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(hash.as_bytes());
    put_bytes(bytes, &item.name);
}

/// Decodes a folder; `load` returns the folder of a hash, and the depth is that of this folder.
pub(crate) fn decode_folder<E>(
    hash: ContentHash,
    bytes: &[u8],
    mut load: impl FnMut(ContentHash) -> Result<Arc<FolderNode>, E>,
) -> Result<Option<FolderNode>, E> {
    let mut reader = Reader(bytes);
    let mut items: Vec<Item> = Vec::new();
    while !reader.0.is_empty() {
        let Some((name, raw)) = reader.item() else {
            return Ok(None);
        };
        let node = match raw {
            RawNode::Leaf(entry) => Node::Leaf(entry),
            RawNode::Folder { mode, hash } => Node::Folder {
                mode,
                folder: load(hash)?,
            },
        };
        if items.last().is_some_and(|it| *it.name >= *name) {
            return Ok(None);
        }
        items.push(Item {
            name,
            node,
            stamp: Stamp::none(),
        });
    }
    Ok(Some(FolderNode { items, hash }))
}

/// Lists the contents that an encoded folder names; `true` for folders.
pub(crate) fn decode_names(bytes: &[u8]) -> Option<Vec<(ContentHash, bool)>> {
    let mut reader = Reader(bytes);
    let mut contents = Vec::new();
    while !reader.0.is_empty() {
        contents.push(match reader.item()?.1 {
            RawNode::Leaf(entry) => (entry.hash, false),
            RawNode::Folder { hash, .. } => (hash, true),
        });
    }
    Some(contents)
}

/// Encodes the gaps of a snapshot. They are a content of their own, because most snapshots have
/// those of the one before.
pub(crate) fn encode_gaps(gaps: &[Gap]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for gap in gaps {
        let reason = REASONS.iter().position(|it| *it == gap.reason).unwrap_or(0);
        bytes.push(reason as u8);
        put_bytes(
            &mut bytes,
            gap.path.as_ref().map_or(b"", |it| it.as_bytes()),
        );
    }
    bytes
}

pub(crate) fn decode_gaps(bytes: &[u8]) -> Option<Vec<Gap>> {
    let mut reader = Reader(bytes);
    let mut gaps = Vec::new();
    while !reader.0.is_empty() {
        let reason = *REASONS.get(usize::from(reader.array::<1>()?[0]))?;
        let path = reader.bytes()?;
        let path = match path.is_empty() {
            true => None,
            false => Some(WorkspacePath::new(as_path(path))?),
        };
        gaps.push(Gap { path, reason });
    }
    Some(gaps)
}

/// Stored form of a snapshot; the root and the gaps are contents of their own.
pub(crate) struct SnapshotRecord {
    pub root: ContentHash,
    pub gaps: ContentHash,
    pub named: BTreeSet<WorkspacePath>,
}

pub(crate) fn encode_record(
    root: ContentHash,
    gaps: ContentHash,
    named: &BTreeSet<WorkspacePath>,
) -> Vec<u8> {
    let mut bytes = RECORD.to_vec();
    bytes.extend(root.as_bytes());
    bytes.extend(gaps.as_bytes());
    for path in named {
        put_bytes(&mut bytes, path.as_bytes());
    }
    bytes
}

pub(crate) fn decode_record(bytes: &[u8]) -> Option<SnapshotRecord> {
    let mut reader = Reader(bytes.strip_prefix(RECORD)?);
    let (root, gaps) = (reader.hash()?, reader.hash()?);
    let mut named = BTreeSet::new();
    while !reader.0.is_empty() {
        named.insert(WorkspacePath::new(as_path(reader.bytes()?))?);
    }
    Some(SnapshotRecord { root, gaps, named })
}

fn as_path(bytes: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt as _;
    std::path::Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// Encodes the last snapshot with its stamps and a checksum.
pub(crate) fn encode_cache(root: &FolderNode) -> Vec<u8> {
    let mut bytes = CACHE.to_vec();
    put_cached(&mut bytes, root);
    let sum = ContentHash::of(&bytes);
    bytes.extend(sum.as_bytes());
    bytes
}

fn put_cached(bytes: &mut Vec<u8>, folder: &FolderNode) {
    bytes.extend((folder.items.len() as u64).to_le_bytes());
    for item in &folder.items {
        put_item(bytes, item);
        let stamp = &item.stamp;
        bytes.push(u8::from(stamp.trust == Trust::Settled));
        bytes.extend(stamp.device.to_le_bytes());
        bytes.extend(stamp.inode.to_le_bytes());
        bytes.extend(stamp.size.to_le_bytes());
        bytes.extend(stamp.mode.to_le_bytes());
        bytes.extend(stamp.modified_ns.to_le_bytes());
        bytes.extend(stamp.changed_ns.to_le_bytes());
        if let Node::Folder { folder, .. } = &item.node {
            put_cached(bytes, folder);
        }
    }
}

pub(crate) fn decode_cache(bytes: &[u8]) -> Option<FolderNode> {
    let (content, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
    if ContentHash::of(content).as_bytes() != sum {
        return None;
    }
    let mut reader = Reader(content.strip_prefix(CACHE)?);
    let root = reader.cached(0)?;
    reader.0.is_empty().then_some(root)
}

fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    bytes.extend((value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
}

enum RawNode {
    Leaf(FileEntry),
    Folder { mode: u32, hash: ContentHash },
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (value, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*value)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn hash(&mut self) -> Option<ContentHash> {
        self.array().map(ContentHash::from_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (value, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(value)
    }

    fn item(&mut self) -> Option<(Box<[u8]>, RawNode)> {
        let kind = self.array::<1>()?[0];
        let (mode, size, hash) = (self.u32()?, self.u64()?, self.hash()?);
        let name = self.bytes()?;
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
            return None;
        }
        let leaf = |kind| {
            RawNode::Leaf(FileEntry {
                kind,
                mode,
                size,
                hash,
            })
        };
        let node = match kind {
            0 => leaf(EntryKind::File),
            1 => leaf(EntryKind::Symlink),
            2 => RawNode::Folder { mode, hash },
            _ => return None,
        };
        Some((name.into(), node))
    }

    fn cached(&mut self, depth: usize) -> Option<FolderNode> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut items = Vec::new();
        for _ in 0..self.u64()? {
            let (name, raw) = self.item()?;
            let trust = match self.array::<1>()?[0] {
                1 => Trust::Settled,
                _ => Trust::Racy,
            };
            let stamp = Stamp {
                device: self.u64()?,
                inode: self.u64()?,
                size: self.u64()?,
                mode: self.u32()?,
                modified_ns: self.array().map(i128::from_le_bytes)?,
                changed_ns: self.array().map(i128::from_le_bytes)?,
                trust,
            };
            let node = match raw {
                RawNode::Leaf(entry) => Node::Leaf(entry),
                RawNode::Folder { mode, .. } => Node::Folder {
                    mode,
                    folder: Arc::new(self.cached(depth + 1)?),
                },
            };
            items.push(Item { name, node, stamp });
        }
        let (folder, _) = FolderNode::new(items);
        Some(folder)
    }
}
