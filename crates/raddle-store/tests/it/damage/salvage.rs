//! Salvage from a file that SQLite cannot read: only true records are exported.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use raddle_core::ports::{AppendError, Journal, ReadError};
use raddle_core::{Record, RecordBody, Seq, ThreadId};
use raddle_store::{BundleEntry, BundleReader, Extent, LocalJournal, Options, Salvage};
use rusqlite::Connection;

use super::{checkpoint, file};
use crate::makers::local;
use crate::records::{ThreadScript, completed, delta, forked, item_started, renamed};

const PAGE: usize = 1024;

/// Creates threads of several kinds, cleanly closed: short ones, one with long records, a fork,
/// open text.
async fn journal(folder: &Path) -> BTreeMap<ThreadId, Vec<Record>> {
    let journal = local(folder);
    let mut scripts = Vec::new();
    for round in 0..6_usize {
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        for turn in 0..=round {
            script
                .turn(&journal, &format!("t{turn}"), "some words")
                .await;
        }
        let long = format!("{round} ").repeat(round * 1_500);
        let bodies = vec![completed("t0", "long", &long), item_started("t0", "i")];
        script.append(&journal, bodies).await;
        script.append(&journal, vec![delta("i", 0, "ab")]).await;
        scripts.push(script);
    }
    let at = Seq(9);
    let mut fork = scripts[3].fork(&journal, at).await;
    let bodies = vec![
        forked(fork.thread, scripts[3].thread, at, 1),
        renamed("the fork"),
    ];
    fork.append(&journal, bodies).await;
    scripts.push(fork);
    let mut all = BTreeMap::new();
    for script in scripts {
        let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
        all.insert(script.thread, records.unwrap());
    }
    drop(journal);
    checkpoint(folder);
    all
}

/// Exports everything possible, and compares it with the original. Returns the threads that were
/// exported whole.
fn salvage_all(folder: &Path, all: &BTreeMap<ThreadId, Vec<Record>>) -> BTreeSet<ThreadId> {
    let mut salvage = Salvage::new(folder);
    let inventory = salvage.threads().unwrap();
    let mut salvaged = BTreeSet::new();
    for thread in inventory.threads {
        let records = all.get(&thread).expect("no thread is made up");
        let mut out = Vec::new();
        if let Ok(exported) = salvage.export(thread, &mut out, Extent::Whole) {
            // Open text is not part of the chain: it may be lost.
            let events = |records: &[Record]| {
                let events = records
                    .iter()
                    .filter(|it| matches!(it.body, RecordBody::Event(_)));
                events.cloned().collect::<Vec<_>>()
            };
            let (exported_events, records) = (events(&read(&out)), events(records));
            // If the end of a thread is unknown, the export reports that.
            assert!(exported_events == records || !exported.lacks.is_empty());
            if exported_events == records {
                salvaged.insert(thread);
            }
        }
        // The intact part of it holds only true records.
        let mut out = Vec::new();
        if salvage.export(thread, &mut out, Extent::Sound).is_ok() {
            for record in read(&out) {
                assert!(records.contains(&record), "{record:?} was never written");
            }
        }
    }
    salvaged
}

fn read(file: &[u8]) -> Vec<Record> {
    let mut file = BundleReader::open(file).unwrap();
    let mut records = Vec::new();
    while let Some(entry) = file.next().unwrap() {
        if let BundleEntry::Record(record) = entry {
            records.push(*record);
        }
    }
    records
}

/// Checks that the journal serves only true records, and that a write is rejected or stored, never
/// lost.
async fn check_served_records(folder: &Path, all: &BTreeMap<ThreadId, Vec<Record>>) {
    let options = Options {
        folder: folder.to_owned(),
    };
    let journal = match LocalJournal::open(&options) {
        Ok(journal) => journal,
        Err(ReadError::Corrupt { .. }) => return,
        Err(other) => panic!("{other:?}"),
    };
    for (thread, records) in all {
        match journal.read(*thread, Seq::ZERO, usize::MAX).await {
            Ok(served) => {
                let sound = served.iter().all(|record| records.contains(record));
                assert!(sound, "{thread} serves what was never written");
            }
            Err(ReadError::Corrupt { .. } | ReadError::NotFound) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    let mut script = ThreadScript::new();
    let records = script.records(vec![crate::records::started(script.thread, "/w")]);
    let class = crate::records::class_of(&records);
    match journal
        .append(script.thread, Seq::ZERO, &records, class)
        .await
    {
        Ok(_) => {
            let result = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
            let corrupt = matches!(result, Err(ReadError::Corrupt { .. }));
            assert!(corrupt || result == Ok(records), "{result:?}");
        }
        Err(AppendError::ReadOnly(_) | AppendError::Unknown(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
}

/// Returns for each page the threads that have an event there, or a segment without which their
/// events are unknown.
fn threads_by_page(folder: &Path, bytes: &[u8]) -> Vec<BTreeSet<ThreadId>> {
    let connection = Connection::open(file(folder)).unwrap();
    let pages = RowFinder::new(&connection, bytes);
    let mut threads = vec![BTreeSet::new(); bytes.len() / PAGE];
    // A thread's events are those of its number, and up to the segment's end those of the forked
    // number.
    let sql = "
        WITH course (id, number, first, last) AS (
            SELECT id, number, ifnull((SELECT max(upto) FROM part WHERE number = thread.number), 0) + 1,
                   (1 << 36) - 1 FROM thread
            UNION ALL
            SELECT id, taken, 0, upto FROM part JOIN thread USING (number))
        SELECT id, at, x'' FROM course JOIN event
            ON at BETWEEN (course.number << 36) + first AND (course.number << 36) + last
        UNION ALL
        SELECT id, 0, part.sum FROM part JOIN thread USING (number)";
    let mut statement = connection.prepare(sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let thread = ThreadId::from(uuid::Uuid::from_bytes(row.get(0).unwrap()));
        let at: i64 = row.get(1).unwrap();
        let segment_sum: Vec<u8> = row.get(2).unwrap();
        let row_pages = match pages.of_events.get(&at) {
            Some(pages) => pages.clone(),
            None => vec![pages.page_with(&segment_sum)],
        };
        for page in row_pages {
            threads[page - 1].insert(thread);
        }
    }
    threads
}

/// Locations of rows. They are found by their hashes, which occur nowhere else.
struct RowFinder<'a> {
    bytes: &'a [u8],
    /// For each event its page, and its overflow pages.
    of_events: BTreeMap<i64, Vec<usize>>,
}

impl<'a> RowFinder<'a> {
    fn new(connection: &Connection, bytes: &'a [u8]) -> Self {
        let mut pages = Self {
            bytes,
            of_events: BTreeMap::new(),
        };
        let mut cells: BTreeMap<usize, u32> = BTreeMap::new();
        let mut events = connection
            .prepare("SELECT at, chain FROM event ORDER BY at")
            .unwrap();
        let mut events = events.query([]).unwrap();
        while let Some(event) = events.next().unwrap() {
            let leaf = pages.page_with(&event.get::<_, Vec<u8>>(1).unwrap());
            // The rows of a page are counted in the order of their keys.
            let cell = cells.entry(leaf).or_default();
            let mut row_pages = vec![leaf];
            row_pages.extend(overflow(connection, leaf, *cell));
            *cell += 1;
            pages.of_events.insert(event.get(0).unwrap(), row_pages);
        }
        pages
    }

    /// Returns the number of the page that contains these bytes.
    fn page_with(&self, pattern: &[u8]) -> usize {
        let holds = |page: &[u8]| page.windows(pattern.len()).any(|it| it == pattern);
        let mut pages = self.bytes.chunks(PAGE);
        pages.position(holds).unwrap() + 1
    }
}

/// Returns the overflow pages of a row.
fn overflow(connection: &Connection, leaf: usize, cell: u32) -> Vec<usize> {
    let sql = "SELECT pageno FROM dbstat WHERE pagetype = 'overflow' AND path LIKE
               (SELECT path FROM dbstat WHERE pageno = ?1) || printf('%03x+%%', ?2)";
    let mut statement = connection.prepare_cached(sql).unwrap();
    let leaf = u32::try_from(leaf).unwrap();
    let pages = statement.query_map([leaf, cell], |row| row.get::<_, u32>(0));
    let pages = pages.unwrap().map(Result::unwrap);
    pages.map(|page| usize::try_from(page).unwrap()).collect()
}

#[tokio::test]
async fn threads_without_rows_on_a_damaged_page_are_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let all = journal(folder.path()).await;
    let bytes = std::fs::read(file(folder.path())).unwrap();
    assert_eq!(bytes.len() % PAGE, 0);
    let by_page = threads_by_page(folder.path(), &bytes);
    assert!(by_page.len() > 30, "{}", by_page.len());
    assert!(by_page.iter().filter(|it| it.is_empty()).count() > 10);
    for (page, affected) in by_page.iter().enumerate() {
        let mut damaged = bytes.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0);
        std::fs::write(file(folder.path()), &damaged).unwrap();
        let salvaged = salvage_all(folder.path(), &all);
        let expected: BTreeSet<ThreadId> = all.keys().copied().collect();
        let expected: BTreeSet<ThreadId> = expected.difference(affected).copied().collect();
        assert_eq!(salvaged, expected, "page {}", page + 1);
        check_served_records(folder.path(), &all).await;
        remove_log(folder.path());
    }
}

#[tokio::test]
async fn a_flipped_bit_in_the_first_page_loses_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    let all = journal(folder.path()).await;
    let bytes = std::fs::read(file(folder.path())).unwrap();
    for at in (0..PAGE).step_by(13) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(file(folder.path()), &damaged).unwrap();
        let salvaged = salvage_all(folder.path(), &all);
        assert_eq!(salvaged.len(), all.len(), "byte {at}");
    }
}

fn remove_log(folder: &Path) {
    for end in ["-wal", "-shm"] {
        let mut path = file(folder).into_os_string();
        path.push(end);
        // The file may not exist.
        let _ = std::fs::remove_file(path);
    }
}
