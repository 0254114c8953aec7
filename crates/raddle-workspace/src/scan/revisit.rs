//! A look at named paths alone, without a walk.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use rustix::fs::fstat;
use rustix::io::Errno;

use super::folder_builder::FolderBuilder;
use super::names::is_repository;
use super::{Coverage, ScanResult, Scanner};
use crate::error::is_absent;
use crate::opened::{kind_of, open_folder, stat_entry};
use crate::path;
use crate::snapshot::{FolderNode, Node, Stamp};
use crate::{EntryKind, Error, GapReason};

impl Scanner<'_> {
    /// Looks at the named paths, and takes everything else from the previous walk.
    pub fn revisit(
        mut self,
        root: &OwnedFd,
        previous: &Arc<FolderNode>,
    ) -> Result<ScanResult, Error> {
        let at_root = |it| Error::disk(".".as_ref(), it);
        self.device = fstat(root).map_err(at_root)?.st_dev;
        let named: Vec<Vec<&[u8]>> = self
            .named
            .iter()
            .map(|it| it.components().collect())
            .collect();
        let mut paths: Vec<&[&[u8]]> = named.iter().map(|it| &**it).collect();
        // By components, not by bytes, so that the names of each folder come in order.
        paths.sort();
        let opened = open_folder(root, b".").map_err(at_root)?;
        let root = self.revisit_folder(Some(&opened), Some(previous), &paths)?;
        self.finish(root)
    }

    /// Looks at the paths below a folder; the folder may be gone.
    fn revisit_folder(
        &mut self,
        opened: Option<&OwnedFd>,
        previous: Option<&Arc<FolderNode>>,
        paths: &[&[&[u8]]],
    ) -> Result<Arc<FolderNode>, Error> {
        let mut builder = FolderBuilder::new(previous);
        let items = previous.map_or(&[][..], |it| &it.items);
        let mut next = 0;
        for group in paths.chunk_by(|a, b| a[0] == b[0]) {
            let name = group[0][0];
            while items.get(next).is_some_and(|it| *it.name < *name) {
                builder.add_unchanged(next);
                next += 1;
            }
            let known = items.get(next).filter(|it| *it.name == *name);
            next += usize::from(known.is_some());
            let length = self.path.len();
            path::push(&mut self.path, name);
            let visited = self.revisit_entry(opened, name, group, &mut builder);
            self.path.truncate(length);
            visited?;
        }
        for at in next..items.len() {
            builder.add_unchanged(at);
        }
        self.built(builder)
    }

    fn revisit_entry(
        &mut self,
        folder: Option<&OwnedFd>,
        name: &[u8],
        group: &[&[&[u8]]],
        builder: &mut FolderBuilder<'_>,
    ) -> Result<(), Error> {
        if is_repository(name) {
            self.gap_here(GapReason::Repository);
            return Ok(());
        }
        let Some(folder) = folder else {
            return Ok(());
        };
        // The shortest path comes first: it covers the others.
        if group[0].len() == 1 {
            return self.entry(folder.as_fd(), name, Coverage::Everything, builder);
        }
        let inner: Vec<&[&[u8]]> = group.iter().map(|it| &it[1..]).collect();
        let previous = builder.previous(name);
        let before = match previous.map(|it| &builder.item(it).node) {
            Some(Node::Folder { folder, .. }) => Some(Arc::clone(folder)),
            _ => None,
        };
        let stat = match stat_entry(folder, name) {
            Ok(stat) if kind_of(&stat) == Some(EntryKind::Folder) => stat,
            Err(error) if !is_absent(error) => {
                self.gap_here(GapReason::Unreadable);
                return Ok(());
            }
            // Nothing is below an entry that is no folder now.
            Ok(_) => return self.entry(folder.as_fd(), name, Coverage::Everything, builder),
            Err(_) => return Ok(()),
        };
        let (reason, opened) = match open_folder(folder, name) {
            _ if stat.st_dev != self.device => (GapReason::OtherFileSystem, None),
            Ok(opened) => (GapReason::Unreadable, Some(opened)),
            Err(Errno::NOENT) => return Ok(()),
            Err(_) => (GapReason::Unreadable, None),
        };
        let Some(opened) = opened else {
            self.gap_here(reason);
            return Ok(());
        };
        let now = self.revisit_folder(Some(&opened), before.as_ref(), &inner)?;
        let stamp = Stamp::new(&stat, self.started_ns);
        builder.add_folder(name, previous, stat.st_mode & 0o777, stamp, now);
        Ok(())
    }
}
