//! Composition: a snapshot with some paths of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{FileEntry, FolderNode, Gap, Item, Node, Snapshot, Stamp};
use crate::{ContentHash, WorkspacePath};

impl Snapshot {
    /// Returns this snapshot with the files and links that another one has at these paths. A path
    /// that the other one lacks is absent in the result. Nothing is read from the disk.
    ///
    /// The result is not stored; [`crate::Workspace::keep`] stores it.
    pub fn with_paths_of(&self, other: &Self, paths: &BTreeSet<WorkspacePath>) -> Self {
        if paths.is_empty() {
            return self.clone();
        }
        let split: Vec<Vec<&[u8]>> = paths.iter().map(|it| it.components().collect()).collect();
        let mut split: Vec<&[&[u8]]> = split.iter().map(|it| &**it).collect();
        // By components, not by bytes, so that the names of each folder come in order.
        split.sort();
        let root = composed(Some(&self.root), Some(&other.root), &split);
        let is_replaced = |gap: &&Gap| {
            let path = gap.path.as_ref();
            path.is_some_and(|gap| paths.iter().any(|it| gap.is_within(it)))
        };
        let mut gaps: Vec<Gap> = self
            .gaps
            .iter()
            .filter(|it| !is_replaced(it))
            .cloned()
            .collect();
        gaps.extend(other.gaps.iter().filter(is_replaced).cloned());
        let named = self.named.union(paths).cloned().collect();
        Self::new(root, gaps, named)
    }
}

impl Snapshot {
    /// Returns this snapshot with another content of a file; `None` if it does not have the file.
    pub(crate) fn with_file_content(
        &self,
        path: &WorkspacePath,
        hash: ContentHash,
        size: u64,
    ) -> Option<Self> {
        let names: Vec<&[u8]> = path.components().collect();
        let root = with_leaf(&self.root, &names, &|known| FileEntry {
            hash,
            size,
            ..*known
        })?;
        Some(Self::new(root, self.gaps.to_vec(), (*self.named).clone()))
    }
}

/// Returns a folder with one changed leaf.
fn with_leaf(
    folder: &FolderNode,
    names: &[&[u8]],
    change: &dyn Fn(&FileEntry) -> FileEntry,
) -> Option<Arc<FolderNode>> {
    let (name, below) = names.split_first()?;
    let mut items = folder.items.clone();
    let item = items.iter_mut().find(|it| *it.name == **name)?;
    item.node = match (&item.node, below) {
        (Node::Leaf(entry), []) => Node::Leaf(change(entry)),
        (Node::Folder { mode, folder }, [_, ..]) => Node::Folder {
            mode: *mode,
            folder: with_leaf(folder, below, change)?,
        },
        _ => return None,
    };
    item.stamp = Stamp::none();
    let (node, _) = FolderNode::new(items);
    Some(Arc::new(node))
}

/// Returns the folder of `base` with the entries of `other` at the paths, which are sorted by their
/// components.
fn composed(
    base: Option<&Arc<FolderNode>>,
    other: Option<&Arc<FolderNode>>,
    paths: &[&[&[u8]]],
) -> Arc<FolderNode> {
    let items = base.map_or(&[][..], |it| &it.items);
    let mut items: BTreeMap<&[u8], Item> = items.iter().map(|it| (&*it.name, it.clone())).collect();
    for group in paths.chunk_by(|a, b| a[0] == b[0]) {
        let name = group[0][0];
        let replaced = composed_entry(items.get(name), other.and_then(|it| it.item(name)), group);
        match replaced {
            Some(item) => items.insert(name, item),
            None => items.remove(name),
        };
    }
    let (node, _) = FolderNode::new(items.into_values().collect());
    Arc::new(node)
}

/// Returns one entry; the paths of the group begin with its name.
fn composed_entry(base: Option<&Item>, other: Option<&Item>, group: &[&[&[u8]]]) -> Option<Item> {
    // The path of the entry itself is the shortest, so it comes first.
    let (is_own, below) = match group[0].len() {
        1 => (true, &group[1..]),
        _ => (false, group),
    };
    let leaf_of = |it: Option<&Item>| it.filter(|it| matches!(it.node, Node::Leaf(_))).cloned();
    let leaf = leaf_of(if is_own { other } else { base });
    if let Some(leaf) = leaf {
        return Some(leaf);
    }
    let (base_mode, base_folder) = folder_of(base).unzip();
    let (other_mode, other_folder) = folder_of(other).unzip();
    let below: Vec<&[&[u8]]> = below.iter().map(|it| &it[1..]).collect();
    let folder = match (below.is_empty(), base_folder) {
        (true, base) => base?.clone(),
        (false, base) => composed(base, other_folder, &below),
    };
    // A folder goes with its last entry, unless the other snapshot has it.
    if folder.items.is_empty() && other_folder.is_none() && !below.is_empty() {
        return None;
    }
    let item = base.or(other)?;
    Some(Item {
        name: item.name.clone(),
        node: Node::Folder {
            mode: other_mode.or(base_mode)?,
            folder,
        },
        stamp: Stamp::none(),
    })
}

fn folder_of(item: Option<&Item>) -> Option<(u32, &Arc<FolderNode>)> {
    match &item?.node {
        Node::Folder { mode, folder } => Some((*mode, folder)),
        Node::Leaf(_) => None,
    }
}
