//! What is got out of a file that SQLite cannot make sense of: true records, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use raddle_core::ports::{AppendError, Journal, ReadError};
use raddle_core::{Record, RecordBody, Seq, ThreadId};
use raddle_store::{BundleEntry, BundleReader, Extent, LocalJournal, Options, Salvage};
use rusqlite::Connection;

use super::{file, move_log};
use crate::records::{ThreadScript, completed, delta, forked, item_started, renamed};
use crate::suite::local;

const PAGE: usize = 1024;

/// Threads of several kinds, closed in good order: short ones, one with long records, a fork, open text.
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
    move_log(folder);
    all
}

/// Saves everything that can be, and holds it against what was there. Says what was saved whole.
fn save(folder: &Path, all: &BTreeMap<ThreadId, Vec<Record>>) -> BTreeSet<ThreadId> {
    let mut salvage = Salvage::new(folder);
    let inventory = salvage.threads().unwrap();
    let mut saved = BTreeSet::new();
    for thread in inventory.threads {
        let records = all.get(&thread).expect("no thread is made up");
        let mut out = Vec::new();
        if let Ok(exported) = salvage.export(thread, &mut out, Extent::Whole) {
            // Open text has no place in the chain: it may be lost.
            let events = |records: &[Record]| {
                let events = records
                    .iter()
                    .filter(|it| matches!(it.body, RecordBody::Event(_)));
                events.cloned().collect::<Vec<_>>()
            };
            let (found, records) = (events(&read(&out)), events(records));
            // Where nothing says where a thread ended, that is said.
            assert!(found == records || !exported.lacks.is_empty());
            if found == records {
                saved.insert(thread);
            }
        }
        // What is sound of it is true as far as it goes.
        let mut out = Vec::new();
        if salvage.export(thread, &mut out, Extent::Sound).is_ok() {
            for record in read(&out) {
                assert!(records.contains(&record), "{record:?} was never written");
            }
        }
    }
    saved
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

/// Whatever the journal still serves is true, and a write is refused or done, never lost.
async fn serves_nothing_false(folder: &Path, all: &BTreeMap<ThreadId, Vec<Record>>) {
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
            Ok(found) => {
                let sound = found.iter().all(|record| records.contains(record));
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
            let found = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
            let corrupt = matches!(found, Err(ReadError::Corrupt { .. }));
            assert!(corrupt || found == Ok(records), "{found:?}");
        }
        Err(AppendError::ReadOnly(_) | AppendError::Unknown(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
}

/// For each page, the threads that have an event there, or a seam without which nobody knows which events
/// are theirs.
fn needed(folder: &Path, bytes: &[u8]) -> Vec<BTreeSet<ThreadId>> {
    let connection = Connection::open(file(folder)).unwrap();
    let pages = RowFinder::new(&connection, bytes);
    let mut needed = vec![BTreeSet::new(); bytes.len() / PAGE];
    // A thread's events are those of its number, and up to the seam those of the number it was forked from.
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
        let seam: Vec<u8> = row.get(2).unwrap();
        let lies_in = match pages.of_events.get(&at) {
            Some(pages) => pages.clone(),
            None => vec![pages.with(&seam)],
        };
        for page in lies_in {
            needed[page - 1].insert(thread);
        }
    }
    needed
}

/// Where rows lie. They are found by the hashes that they bear, which stand nowhere else.
struct RowFinder<'a> {
    bytes: &'a [u8],
    /// For each event its page, and those in which it goes on.
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
            let leaf = pages.with(&event.get::<_, Vec<u8>>(1).unwrap());
            // The rows of a page are counted in the order of their keys.
            let cell = cells.entry(leaf).or_default();
            let mut lies_in = vec![leaf];
            lies_in.extend(overflow(connection, leaf, *cell));
            *cell += 1;
            pages.of_events.insert(event.get(0).unwrap(), lies_in);
        }
        pages
    }

    /// The number of the page with these bytes.
    fn with(&self, mark: &[u8]) -> usize {
        let holds = |page: &[u8]| page.windows(mark.len()).any(|it| it == mark);
        let mut pages = self.bytes.chunks(PAGE);
        pages.position(holds).unwrap() + 1
    }
}

/// The pages in which a row of a page goes on.
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
async fn whatever_page_is_hit_every_thread_is_saved_that_has_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let all = journal(folder.path()).await;
    let bytes = std::fs::read(file(folder.path())).unwrap();
    assert_eq!(bytes.len() % PAGE, 0);
    let needed = needed(folder.path(), &bytes);
    assert!(needed.len() > 30, "{}", needed.len());
    assert!(needed.iter().filter(|it| it.is_empty()).count() > 10);
    for (page, lost) in needed.iter().enumerate() {
        let mut hit = bytes.clone();
        hit[page * PAGE..(page + 1) * PAGE].fill(0);
        std::fs::write(file(folder.path()), &hit).unwrap();
        let saved = save(folder.path(), &all);
        let expected: BTreeSet<ThreadId> = all.keys().copied().collect();
        let expected: BTreeSet<ThreadId> = expected.difference(lost).copied().collect();
        assert_eq!(saved, expected, "page {}", page + 1);
        serves_nothing_false(folder.path(), &all).await;
        remove_log(folder.path());
    }
}

#[tokio::test]
async fn whatever_bit_of_the_first_page_is_hit_every_thread_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let all = journal(folder.path()).await;
    let bytes = std::fs::read(file(folder.path())).unwrap();
    for at in (0..PAGE).step_by(13) {
        let mut hit = bytes.clone();
        hit[at] ^= 1 << (at % 8);
        std::fs::write(file(folder.path()), &hit).unwrap();
        let saved = save(folder.path(), &all);
        assert_eq!(saved.len(), all.len(), "byte {at}");
    }
}

fn remove_log(folder: &Path) {
    for end in ["-wal", "-shm"] {
        let mut path = file(folder).into_os_string();
        path.push(end);
        // It may not be there.
        let _ = std::fs::remove_file(path);
    }
}
