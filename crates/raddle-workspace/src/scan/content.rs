//! Reading of files and links into the store.

use std::io::{self, Read as _};
use std::os::fd::BorrowedFd;

use rustix::fs::fstat;
use rustix::io::Errno;

use super::{Scanner, TRIES};
use crate::opened::{open_file, read_link, stat_entry};
use crate::snapshot::{Stamp, Trust};
use crate::{ContentHash, EntryKind, Error, FileEntry, GapReason};

/// Files up to this size are read into memory at once.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// Reason why a file was not read.
pub(super) enum Unread {
    /// It is gone.
    Vanished,
    /// Another kind of entry took its place.
    Replaced,
    Gap(GapReason),
}

impl From<Errno> for Unread {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Vanished,
            Errno::LOOP | Errno::INVAL | Errno::NXIO => Self::Replaced,
            _ => Self::Gap(GapReason::Unreadable),
        }
    }
}

impl From<io::Error> for Unread {
    fn from(_: io::Error) -> Self {
        Self::Gap(GapReason::Unreadable)
    }
}

/// Entry and stamp of a file. The inner error is one of the file alone.
pub(super) type ReadEntry = Result<Result<(FileEntry, Stamp), Unread>, Error>;

impl Scanner<'_> {
    /// Reads a file or a link into the store.
    pub(super) fn leaf(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        kind: EntryKind,
    ) -> ReadEntry {
        match kind {
            EntryKind::Symlink => self.link(folder, name),
            _ => self.file(folder, name),
        }
    }

    fn link(&mut self, folder: BorrowedFd<'_>, name: &[u8]) -> ReadEntry {
        let read = stat_entry(folder, name).and_then(|it| Ok((it, read_link(folder, name)?)));
        let (stat, target) = match read {
            Ok(read) => read,
            Err(error) => return Ok(Err(error.into())),
        };
        let hash = ContentHash::of(&target);
        self.put(hash, &target)?;
        let entry = FileEntry {
            kind: EntryKind::Symlink,
            mode: 0,
            size: target.len() as u64,
            hash,
        };
        Ok(Ok((entry, Stamp::new(&stat, self.started_ns))))
    }

    fn file(&mut self, folder: BorrowedFd<'_>, name: &[u8]) -> ReadEntry {
        let mut last = None;
        for _ in 0..TRIES {
            let (mut file, stat) = match open_file(folder, name) {
                Ok(opened) => opened,
                Err(error) => return Ok(Err(error.into())),
            };
            let stamp = Stamp::new(&stat, self.started_ns);
            let (hash, size) = match self.read_content(&mut file, stamp.size)? {
                Ok(read) => read,
                Err(error) => return Ok(Err(error)),
            };
            let entry = FileEntry {
                kind: EntryKind::File,
                mode: stat.st_mode & 0o777,
                size,
                hash,
            };
            let is_whole = fstat(&file)
                .is_ok_and(|it| Stamp::new(&it, self.started_ns).is_same_file(&stamp))
                && size == stamp.size;
            if is_whole {
                return Ok(Ok((entry, stamp)));
            }
            // It was written meanwhile. The last try counts, but is not believed the next time.
            let trust = Trust::Racy;
            last = Some((entry, Stamp { trust, ..stamp }));
        }
        Ok(last.ok_or(Unread::Gap(GapReason::Unreadable)))
    }

    fn read_content(
        &mut self,
        file: &mut std::fs::File,
        size: u64,
    ) -> Result<Result<(ContentHash, u64), Unread>, Error> {
        let limit = self.limits.file_bytes_max;
        if size <= SMALL_BYTES_MAX {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            let mut limited = (&mut *file).take(SMALL_BYTES_MAX + 1);
            let read = limited.read_to_end(&mut buffer);
            let length = buffer.len() as u64;
            let result = match read {
                Err(error) => Some(Err(error.into())),
                Ok(_) if length > limit => Some(Err(Unread::Gap(GapReason::TooLarge))),
                Ok(_) if length <= SMALL_BYTES_MAX => {
                    let hash = ContentHash::of(&buffer);
                    self.put(hash, &buffer)?;
                    Some(Ok((hash, length)))
                }
                Ok(_) => None,
            };
            self.buffer = buffer;
            if let Some(result) = result {
                return Ok(result);
            }
            if let Err(error) = io::Seek::rewind(file) {
                return Ok(Err(error.into()));
            }
        }
        let store = self.store;
        let mut limited = file.take(limit.saturating_add(1));
        let streamed = self
            .pack()?
            .put_stream(&mut limited, |it| store.contains(it))?;
        Ok(match streamed {
            Ok((_, size)) if size > limit => Err(Unread::Gap(GapReason::TooLarge)),
            Ok(read) => Ok(read),
            Err(error) => Err(error.into()),
        })
    }
}
