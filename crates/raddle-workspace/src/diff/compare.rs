//! The files and links that differ between two trees. Equal folders are not entered.

use std::cmp::Ordering;

use crate::snapshot::{FolderNode, Item, Node};
use crate::{FileEntry, WorkspacePath};

/// A path whose file or link differs between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The path.
    pub path: WorkspacePath,
    /// Its file or link before.
    pub before: Option<FileEntry>,
    /// Its file or link after.
    pub after: Option<FileEntry>,
}

/// Lists the differences, sorted by path.
pub(crate) fn leaves(before: &FolderNode, after: &FolderNode) -> Vec<PathChange> {
    let mut changes = Vec::new();
    folders(None, Some(before), Some(after), &mut changes);
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn folders(
    path: Option<&WorkspacePath>,
    before: Option<&FolderNode>,
    after: Option<&FolderNode>,
    changes: &mut Vec<PathChange>,
) {
    if before.map(|it| it.hash) == after.map(|it| it.hash) {
        return;
    }
    let items = |it: Option<&FolderNode>| it.map_or(0, |it| it.items.len());
    let (mut left, mut right) = (0, 0);
    while left < items(before) || right < items(after) {
        let old = before.and_then(|it| it.items.get(left));
        let new = after.and_then(|it| it.items.get(right));
        let order = match (old, new) {
            (Some(old), Some(new)) => old.name.cmp(&new.name),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let old = old.filter(|_| order != Ordering::Greater);
        let new = new.filter(|_| order != Ordering::Less);
        left += usize::from(old.is_some());
        right += usize::from(new.is_some());
        entries(path, old, new, changes);
    }
}

fn entries(
    path: Option<&WorkspacePath>,
    before: Option<&Item>,
    after: Option<&Item>,
    changes: &mut Vec<PathChange>,
) {
    let Some(name) = before.or(after).map(|it| &it.name) else {
        return;
    };
    let path = WorkspacePath::join(path, name);
    let (old_leaf, old_folder) = split(before);
    let (new_leaf, new_folder) = split(after);
    if old_leaf != new_leaf {
        changes.push(PathChange {
            path: path.clone(),
            before: old_leaf,
            after: new_leaf,
        });
    }
    folders(Some(&path), old_folder, new_folder, changes);
}

fn split(item: Option<&Item>) -> (Option<FileEntry>, Option<&FolderNode>) {
    match item.map(|it| &it.node) {
        Some(Node::Leaf(entry)) => (Some(*entry), None),
        Some(Node::Folder { folder, .. }) => (None, Some(folder)),
        None => (None, None),
    }
}
