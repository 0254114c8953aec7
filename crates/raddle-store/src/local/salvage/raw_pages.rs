//! Pages of the journal's file and its WAL, read without SQLite.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::schema;
use super::super::wal::{self, Frame, Frames};
use super::page::{self, Cell, ColumnValue, PageCells};

/// Length of the file header, before the rows of the first page.
const FILE_HEADER_BYTES: usize = 100;

/// Maximum number of pages by which the WAL may extend the file.
const GROWTH_MAX: u32 = 1 << 20;

/// Location of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageLocation {
    source: PageSource,
    /// Offset in its source.
    at: u64,
}

/// File that holds a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageSource {
    File,
    Log,
    /// The WAL, after the first frame with a wrong checksum.
    Beyond,
}

/// Location of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowLocation {
    page: PageLocation,
    /// Offset in its page.
    start: usize,
    /// Type byte of its page.
    kind: u8,
}

/// Pages of a journal.
#[derive(Debug)]
pub(super) struct RawPages {
    file: File,
    log: Option<File>,
    page_bytes: usize,
    pages: u32,
    /// Offsets of each page's frames in the WAL, oldest first.
    frames: HashMap<u32, Vec<u64>>,
    /// Offsets of the frames that SQLite skips.
    beyond: HashMap<u32, Vec<u64>>,
}

impl RawPages {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let file = File::open(folder.join(schema::FILE))?;
        let log = match File::open(wal::path(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            log => Some(log?),
        };
        let page_bytes = schema::PAGE_BYTES as usize;
        let file_pages = file.metadata()?.len() / page_bytes as u64;
        let mut raw = Self {
            file,
            log,
            page_bytes,
            pages: u32::try_from(file_pages).unwrap_or(u32::MAX),
            frames: HashMap::new(),
            beyond: HashMap::new(),
        };
        raw.read_log()?;
        Ok(raw)
    }

    /// Finds the pages in the WAL. SQLite stops at the first frame with a wrong checksum. Here the
    /// later frames are read too, because the hashes of the records show more precisely than those
    /// of the WAL which data is intact.
    fn read_log(&mut self) -> io::Result<()> {
        let Some(mut log) = self.log.as_ref() else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let Frames {
            committed, beyond, ..
        } = Frames::of(&bytes);
        let most = self.pages.saturating_add(GROWTH_MAX);
        for Frame { page, .. } in committed.iter().chain(&beyond) {
            self.pages = self.pages.max((*page).min(most));
        }
        for (frames, pages) in [(committed, &mut self.frames), (beyond, &mut self.beyond)] {
            for Frame { page, at, .. } in frames {
                pages.entry(page).or_default().push(at);
            }
        }
        Ok(())
    }

    /// Passes every row and index entry that can be found to the callback.
    pub(super) fn scan(&self, emit: &mut dyn FnMut(RowLocation, Cell)) {
        for number in 1..=self.pages {
            self.scan_forms(number, self.served(number), emit);
            self.scan_forms(number, self.skipped(number), emit);
        }
    }

    /// Scans the newest version of a page, and an older one only if the newest is damaged.
    fn scan_forms(
        &self,
        number: u32,
        forms: impl Iterator<Item = PageLocation>,
        emit: &mut dyn FnMut(RowLocation, Cell),
    ) {
        let header = if number == 1 { FILE_HEADER_BYTES } else { 0 };
        for page_location in forms {
            let Some(page) = self.bytes(page_location) else {
                continue;
            };
            let PageCells { cells, broken } = page::read(&page, header);
            for (start, cell) in cells {
                let row_location = RowLocation {
                    page: page_location,
                    start,
                    kind: page[header],
                };
                emit(row_location, cell);
            }
            if !broken {
                break;
            }
        }
    }

    /// Returns the locations of the versions of a page that SQLite may serve, the newest first.
    fn served(&self, number: u32) -> impl Iterator<Item = PageLocation> + '_ {
        let at = u64::from(number.saturating_sub(1)) * self.page_bytes as u64;
        let file = PageLocation {
            source: PageSource::File,
            at,
        };
        frame_locations(&self.frames, number, PageSource::Log).chain([file])
    }

    /// Returns the locations of the versions of a page that SQLite skips, the newest first. They
    /// are either newer than all others or were never committed.
    fn skipped(&self, number: u32) -> impl Iterator<Item = PageLocation> + '_ {
        frame_locations(&self.beyond, number, PageSource::Beyond)
    }

    fn bytes(&self, location: PageLocation) -> Option<Vec<u8>> {
        let file = match location.source {
            PageSource::File => &self.file,
            PageSource::Log | PageSource::Beyond => self.log.as_ref()?,
        };
        let mut page = vec![0; self.page_bytes];
        file.read_exact_at(&mut page, location.at).ok()?;
        Some(page)
    }

    /// Returns the columns of the row at a location.
    pub(super) fn values(&self, location: RowLocation) -> Option<Vec<ColumnValue>> {
        let page = self.bytes(location.page)?;
        let cell = page::cell(&page, location.start, location.kind)?;
        cell.values(&self.whole(&cell, location.page.source)?)
    }

    /// Returns the payload of a row, with its overflow pages.
    fn whole(&self, cell: &Cell, source: PageSource) -> Option<Vec<u8>> {
        let mut whole = cell.local.clone();
        let mut next = cell.overflow;
        while let Some(number) = next.filter(|number| *number != 0) {
            if whole.len() >= cell.bytes {
                break;
            }
            let skipped = self.skipped(number);
            let newest = skipped.take_while(|_| source == PageSource::Beyond);
            let page = self.bytes(newest.chain(self.served(number)).next()?)?;
            next = page::number(&page, 0, 4).and_then(|it| u32::try_from(it).ok());
            let chunk_len = (cell.bytes - whole.len()).min(page.len() - 4);
            whole.extend_from_slice(&page[4..4 + chunk_len]);
        }
        (whole.len() == cell.bytes).then_some(whole)
    }
}

fn frame_locations(
    frames: &HashMap<u32, Vec<u64>>,
    number: u32,
    source: PageSource,
) -> impl Iterator<Item = PageLocation> + '_ {
    let frames = frames.get(&number).into_iter().flatten().rev();
    frames.map(move |at| PageLocation { source, at: *at })
}
