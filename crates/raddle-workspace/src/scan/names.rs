//! The names in a folder, sorted.

use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use crate::EntryKind;

/// Names and kinds of the entries of a folder. They share one allocation.
pub(crate) struct EntryNames {
    bytes: Vec<u8>,
    entries: Vec<(Range<usize>, Option<EntryKind>)>,
}

impl EntryNames {
    pub fn read(folder: impl AsFd) -> Result<Self, Errno> {
        let mut names = Self {
            bytes: Vec::new(),
            entries: Vec::new(),
        };
        let mut folder = Dir::read_from(folder)?;
        while let Some(entry) = folder.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::RegularFile => Some(EntryKind::File),
                FileType::Symlink => Some(EntryKind::Symlink),
                FileType::Directory => Some(EntryKind::Folder),
                FileType::Unknown => kind_of_entry(&folder, name),
                _ => None,
            };
            let start = names.bytes.len();
            names.bytes.extend_from_slice(name);
            names.entries.push((start..names.bytes.len(), kind));
        }
        let bytes = &names.bytes;
        let by_name = |a: &Range<usize>, b: &Range<usize>| bytes[a.clone()].cmp(&bytes[b.clone()]);
        names
            .entries
            .sort_unstable_by(|(a, _), (b, _)| by_name(a, b));
        Ok(names)
    }

    /// Returns name and kind; no kind for pipes, sockets and devices.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<EntryKind>)> {
        let entries = self.entries.iter();
        entries.map(|(name, kind)| (&self.bytes[name.clone()], *kind))
    }

    pub fn contains(&self, name: &[u8]) -> bool {
        let by_name = |(it, _): &(Range<usize>, _)| self.bytes[it.clone()].cmp(name);
        self.entries.binary_search_by(by_name).is_ok()
    }
}

/// Some file systems do not list kinds.
fn kind_of_entry(folder: &Dir, name: &[u8]) -> Option<EntryKind> {
    let stat = crate::opened::stat_entry(folder.fd().ok()?, name).ok()?;
    crate::opened::kind_of(&stat)
}

/// Reports whether an entry holds the data of a repository. Case counts for nothing here: where
/// the file system folds case, `.GIT` is `.git`.
pub(crate) fn is_repository(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b".git")
}
