//! The journal's file and its log, as pages, read without SQLite.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::super::schema;
use super::super::wal::{self, Frame, Frames};
use super::page::{self, Cell, ColumnValue, PageCells};

/// Before the rows of the first page.
const FILE_HEADER_BYTES: usize = 100;

/// By how much a log may make the file longer.
const GROWTH_MAX: u32 = 1 << 20;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageLocation {
    source: PageSource,
    /// Where it begins there.
    at: u64,
}

/// What a page is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageSource {
    File,
    Log,
    /// The log, after the first page with a wrong checksum.
    Beyond,
}

/// Where a row was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowLocation {
    page: PageLocation,
    /// Where it begins in its page.
    start: usize,
    /// Of what kind its page is.
    kind: u8,
}

/// The pages that a journal is made of.
#[derive(Debug)]
pub(super) struct RawPages {
    file: File,
    log: Option<File>,
    page_bytes: usize,
    pages: u32,
    /// For each page that is in the log, where, oldest first.
    frames: HashMap<u32, Vec<u64>>,
    /// The same of what SQLite passes over.
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
        let held = file.metadata()?.len() / page_bytes as u64;
        let mut disk = Self {
            file,
            log,
            page_bytes,
            pages: u32::try_from(held).unwrap_or(u32::MAX),
            frames: HashMap::new(),
            beyond: HashMap::new(),
        };
        disk.read_log()?;
        Ok(disk)
    }

    /// Finds the pages in the log. SQLite stops at the first that bears a wrong checksum; here what
    /// follows it is looked at too, because the hashes of the records say better than those of the log
    /// what is sound.
    fn read_log(&mut self) -> io::Result<()> {
        let Some(mut log) = self.log.as_ref() else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes)?;
        let Frames { taken, beyond, .. } = Frames::of(&bytes);
        let most = self.pages.saturating_add(GROWTH_MAX);
        for Frame { page, .. } in taken.iter().chain(&beyond) {
            self.pages = self.pages.max((*page).min(most));
        }
        for (frames, pages) in [(taken, &mut self.frames), (beyond, &mut self.beyond)] {
            for Frame { page, at, .. } in frames {
                pages.entry(page).or_default().push(at);
            }
        }
        Ok(())
    }

    /// Hands over every row and index entry that can be found.
    pub(super) fn scan(&self, take: &mut dyn FnMut(RowLocation, Cell)) {
        for number in 1..=self.pages {
            self.scan_forms(number, self.served(number), take);
            self.scan_forms(number, self.passed_over(number), take);
        }
    }

    /// The newest form of a page counts; an older one only where the newest is hit.
    fn scan_forms(
        &self,
        number: u32,
        forms: impl Iterator<Item = PageLocation>,
        take: &mut dyn FnMut(RowLocation, Cell),
    ) {
        let header = if number == 1 { FILE_HEADER_BYTES } else { 0 };
        for spot in forms {
            let Some(page) = self.bytes(spot) else {
                continue;
            };
            let PageCells { cells, broken } = page::read(&page, header);
            for (start, cell) in cells {
                let place = RowLocation {
                    page: spot,
                    start,
                    kind: page[header],
                };
                take(place, cell);
            }
            if !broken {
                break;
            }
        }
    }

    /// Where the forms of a page are that SQLite may serve, the newest first.
    fn served(&self, number: u32) -> impl Iterator<Item = PageLocation> + '_ {
        let at = u64::from(number.saturating_sub(1)) * self.page_bytes as u64;
        let file = PageLocation {
            source: PageSource::File,
            at,
        };
        spots(&self.frames, number, PageSource::Log).chain([file])
    }

    /// Where the forms of a page are that it passes over, the newest first. They are either newer than all
    /// others or were never ended.
    fn passed_over(&self, number: u32) -> impl Iterator<Item = PageLocation> + '_ {
        spots(&self.beyond, number, PageSource::Beyond)
    }

    fn bytes(&self, spot: PageLocation) -> Option<Vec<u8>> {
        let file = match spot.source {
            PageSource::File => &self.file,
            PageSource::Log | PageSource::Beyond => self.log.as_ref()?,
        };
        let mut page = vec![0; self.page_bytes];
        file.read_exact_at(&mut page, spot.at).ok()?;
        Some(page)
    }

    /// The columns of a row that was found here.
    pub(super) fn values(&self, place: RowLocation) -> Option<Vec<ColumnValue>> {
        let page = self.bytes(place.page)?;
        let cell = page::cell(&page, place.start, place.kind)?;
        cell.values(&self.whole(&cell, place.page.source)?)
    }

    /// The whole of a row, with what lies in other pages.
    fn whole(&self, cell: &Cell, source: PageSource) -> Option<Vec<u8>> {
        let mut whole = cell.local.clone();
        let mut next = cell.overflow;
        while let Some(number) = next.filter(|number| *number != 0) {
            if whole.len() >= cell.bytes {
                break;
            }
            let passed_over = self.passed_over(number);
            let newest = passed_over.take_while(|_| source == PageSource::Beyond);
            let page = self.bytes(newest.chain(self.served(number)).next()?)?;
            next = page::number(&page, 0, 4).and_then(|it| u32::try_from(it).ok());
            let wanted = (cell.bytes - whole.len()).min(page.len() - 4);
            whole.extend_from_slice(&page[4..4 + wanted]);
        }
        (whole.len() == cell.bytes).then_some(whole)
    }
}

fn spots(
    frames: &HashMap<u32, Vec<u64>>,
    number: u32,
    source: PageSource,
) -> impl Iterator<Item = PageLocation> + '_ {
    let frames = frames.get(&number).into_iter().flatten().rev();
    frames.map(move |at| PageLocation { source, at: *at })
}
