//! The new node of a folder, or the old one if nothing changed.

use std::sync::Arc;

use crate::snapshot::{FolderNode, Item, Node, Stamp};

/// Collects the entries of a folder in the order of their names. As long as they are those of the
/// previous node, nothing is copied.
pub(super) struct FolderBuilder<'a> {
    previous: Option<&'a Arc<FolderNode>>,
    /// Number of first entries of the previous node that are entries now.
    same: usize,
    /// All entries, once one differs.
    items: Option<Vec<Item>>,
    /// Where the search for the next name begins.
    next: usize,
}

impl<'a> FolderBuilder<'a> {
    pub fn new(previous: Option<&'a Arc<FolderNode>>) -> Self {
        Self {
            previous,
            same: 0,
            items: None,
            next: 0,
        }
    }

    /// Returns the place of the entry that had this name. Names must be asked for in order.
    pub fn previous(&mut self, name: &[u8]) -> Option<usize> {
        let items = &self.previous?.items;
        while let Some(item) = items.get(self.next) {
            match (*item.name).cmp(name) {
                std::cmp::Ordering::Less => self.next += 1,
                std::cmp::Ordering::Equal => return Some(self.next),
                std::cmp::Ordering::Greater => return None,
            }
        }
        None
    }

    /// Returns an entry of the previous node, by its place.
    pub fn item(&self, at: usize) -> &'a Item {
        // A place comes from `previous`, so there is a previous node with that many entries.
        &self.previous.expect("a previous node").items[at]
    }

    /// Adds an entry of the previous node.
    pub fn add_unchanged(&mut self, at: usize) {
        if self.items.is_none() && at == self.same {
            self.same += 1;
        } else {
            let item = self.item(at).clone();
            self.add(item);
        }
    }

    pub fn add_folder(
        &mut self,
        name: &[u8],
        previous: Option<usize>,
        mode: u32,
        stamp: Stamp,
        folder: Arc<FolderNode>,
    ) {
        if let Some(at) = previous
            && let Node::Folder {
                mode: mode_before,
                folder: before,
            } = &self.item(at).node
            && *mode_before == mode
            && Arc::ptr_eq(before, &folder)
            && self.item(at).stamp.is_same_inode(&stamp)
        {
            self.add_unchanged(at);
            return;
        }
        self.add(Item {
            name: name.into(),
            node: Node::Folder { mode, folder },
            stamp,
        });
    }

    pub fn add(&mut self, item: Item) {
        let (previous, same) = (self.previous, self.same);
        let items = self.items.get_or_insert_with(|| match previous {
            Some(previous) => previous.items[..same].to_vec(),
            None => Vec::new(),
        });
        items.push(item);
    }

    /// Returns the previous node if all its entries are those of the folder, or the entries.
    pub fn finish(self) -> Result<Arc<FolderNode>, Vec<Item>> {
        match (self.items, self.previous) {
            (Some(items), _) => Err(items),
            (None, Some(previous)) if self.same == previous.items.len() => Ok(Arc::clone(previous)),
            (None, Some(previous)) => Err(previous.items[..self.same].to_vec()),
            (None, None) => Err(Vec::new()),
        }
    }
}
