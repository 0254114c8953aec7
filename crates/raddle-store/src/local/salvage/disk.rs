//! The journal's file and its log, as pages, read without SQLite.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::schema;
use super::page::{self, Cell, Found, Value};

/// Before the rows of the first page.
const FILE_HEADER_BYTES: usize = 100;

/// Before the pages of the log.
const LOG_HEADER_BYTES: u64 = 32;

/// Before each page of the log.
const FRAME_HEADER_BYTES: u64 = 24;

/// Where a row was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    in_log: bool,
    /// Where its page begins in the file or the log.
    page: u64,
    /// Where it begins in its page.
    start: usize,
    /// Of what kind its page is.
    kind: u8,
}

/// The pages that a journal is made of.
#[derive(Debug)]
pub(super) struct Disk {
    file: File,
    log: Option<File>,
    page_bytes: usize,
    pages: u32,
    /// For each page that is in the log, where, oldest first.
    frames: HashMap<u32, Vec<u64>>,
}

impl Disk {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join(schema::FILE);
        let file = File::open(&path)?;
        let mut log_path = path.into_os_string();
        log_path.push("-wal");
        let log = match File::open(log_path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            log => Some(log?),
        };
        let page_bytes = schema::PAGE_BYTES as usize;
        let held = file.metadata()?.len() / page_bytes as u64;
        let mut disk = Self {
            file,
            log,
            page_bytes,
            pages: u32::try_from(held).unwrap_or(u32::MAX),
            frames: HashMap::new(),
        };
        disk.read_log()?;
        Ok(disk)
    }

    /// Finds the pages in the log: those of its present round, up to the last that ends a transaction.
    /// SQLite stops at the first that bears a wrong checksum; here what follows it is looked at too,
    /// because the hashes of the records say better than those of the log what is sound.
    fn read_log(&mut self) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let mut header = [0; LOG_HEADER_BYTES as usize];
        if log.read_exact_at(&mut header, 0).is_err() {
            return Ok(());
        }
        let step = FRAME_HEADER_BYTES + self.page_bytes as u64;
        let frames = (log.metadata()?.len().saturating_sub(LOG_HEADER_BYTES)) / step;
        let mut pending = Vec::new();
        for frame in 0..frames {
            let at = LOG_HEADER_BYTES + frame * step;
            let mut head = [0; FRAME_HEADER_BYTES as usize];
            log.read_exact_at(&mut head, at)?;
            if head[8..16] != header[16..24] {
                // Of a former round, or hit.
                continue;
            }
            let Some(number) = page::number(&head, 0, 4).and_then(|it| u32::try_from(it).ok())
            else {
                continue;
            };
            pending.push((number, at + FRAME_HEADER_BYTES));
            if head[4..8] != [0; 4] {
                for (number, at) in pending.drain(..) {
                    self.frames.entry(number).or_default().push(at);
                    self.pages = self
                        .pages
                        .max(number.min(self.pages.saturating_add(1 << 20)));
                }
            }
        }
        Ok(())
    }

    /// Hands over every row and index entry that can be found.
    pub(super) fn scan(&self, take: &mut dyn FnMut(Place, Cell)) {
        for number in 1..=self.pages {
            let header = if number == 1 { FILE_HEADER_BYTES } else { 0 };
            for (in_log, at) in self.versions(number) {
                let Some(page) = self.bytes(in_log, at) else {
                    continue;
                };
                let Found { cells, broken } = page::read(&page, header);
                for (start, cell) in cells {
                    let place = Place {
                        in_log,
                        page: at,
                        start,
                        kind: page[header],
                    };
                    take(place, cell);
                }
                // The newest form of a page counts; an older one only where the newest is hit.
                if !broken {
                    break;
                }
            }
        }
    }

    /// Where the forms of a page are, the newest first.
    fn versions(&self, number: u32) -> impl Iterator<Item = (bool, u64)> + '_ {
        let at = u64::from(number.saturating_sub(1)) * self.page_bytes as u64;
        let frames = self.frames.get(&number).into_iter().flatten().rev();
        frames.map(|at| (true, *at)).chain([(false, at)])
    }

    fn bytes(&self, in_log: bool, at: u64) -> Option<Vec<u8>> {
        let file = if in_log {
            self.log.as_ref()?
        } else {
            &self.file
        };
        let mut page = vec![0; self.page_bytes];
        file.read_exact_at(&mut page, at).ok()?;
        Some(page)
    }

    /// The columns of a row that was found here.
    pub(super) fn values(&self, place: Place) -> Option<Vec<Value>> {
        let page = self.bytes(place.in_log, place.page)?;
        let cell = page::cell(&page, place.start, place.kind)?;
        cell.values(&self.whole(&cell)?)
    }

    /// The whole of a row, with what lies in other pages.
    fn whole(&self, cell: &Cell) -> Option<Vec<u8>> {
        let mut whole = cell.local.clone();
        let mut next = cell.overflow;
        while let Some(number) = next.filter(|number| *number != 0) {
            if whole.len() >= cell.bytes {
                break;
            }
            let (in_log, at) = self.versions(number).next()?;
            let page = self.bytes(in_log, at)?;
            next = page::number(&page, 0, 4).and_then(|it| u32::try_from(it).ok());
            let wanted = (cell.bytes - whole.len()).min(page.len() - 4);
            whole.extend_from_slice(&page[4..4 + wanted]);
        }
        (whole.len() == cell.bytes).then_some(whole)
    }
}
