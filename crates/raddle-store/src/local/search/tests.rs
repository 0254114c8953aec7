#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use raddle_core::ports::Journal;
use raddle_core::{
    Class, Event, Record, RecordBody, Renamed, Settings, ThreadId, ThreadSource, ThreadStarted,
    Timestamp,
};

use super::*;
use crate::local::schema;
use crate::{Archive, LocalJournal, Options};

fn started(thread: ThreadId) -> RecordBody {
    Event::ThreadStarted(ThreadStarted {
        thread,
        tenant: None,
        principal: None,
        source: ThreadSource::Cli,
        originator: None,
        label: None,
        version: "1".to_owned(),
        ephemeral: false,
        paginated: false,
        git: None,
        settings: Settings::default(),
    })
    .into()
}

fn renamed(name: &str) -> RecordBody {
    Event::Renamed(Renamed {
        name: Some(name.to_owned()),
        principal: None,
    })
    .into()
}

/// Creates a thread that is renamed to each of these names.
async fn thread(journal: &LocalJournal, at: i64, names: &[&str]) -> ThreadId {
    let thread = ThreadId::mint();
    let bodies = std::iter::once(started(thread)).chain(names.iter().map(|it| renamed(it)));
    let records: Vec<Record> = (1..)
        .zip(bodies)
        .map(|(seq, body)| Record {
            seq: Seq(seq),
            at: Timestamp(at),
            body,
        })
        .collect();
    let appended = journal.append(thread, Seq::ZERO, &records, Class::Process);
    appended.await.unwrap();
    thread
}

/// Waits until all stored records are in the index.
fn catch_up(journal: &LocalJournal, folder: &Path) {
    let archive = Archive::open(folder).unwrap().unwrap();
    let mut lag = archive.lag().unwrap();
    while lag.threads() > 0 {
        journal.indexer.signal().hurry();
        std::thread::yield_now();
        lag.refresh().unwrap();
    }
}

#[tokio::test]
async fn pages_that_end_early_join_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let journal = LocalJournal::open(&Options { folder: path }).unwrap();
    let mut holders = vec![thread(&journal, 0, &["a needle"; 2_100]).await];
    for at in 1..200 {
        let holds = at % 7 == 0;
        let name = if holds { "some needle" } else { "nothing" };
        let id = thread(&journal, at, &[name]).await;
        if holds {
            holders.push(id);
        }
    }
    holders.reverse();
    catch_up(&journal, folder.path());
    let connection = schema::open_to_read(folder.path()).unwrap();
    let lists = Lists {
        connection: &connection,
        files: &journal.files,
        quarantine: &journal.quarantine,
    };
    for limit in [1, 10, 100] {
        for is_late in [&(|| true) as &dyn Fn() -> bool, &|| false] {
            let mut query = ListQuery {
                limit,
                ..ListQuery::default()
            };
            let mut threads = Vec::new();
            let mut pages = 0;
            loop {
                let page = search_until(lists, folder.path(), "needle", &query, is_late);
                let page = page.unwrap();
                threads.extend(page.entries.iter().map(|it| it.thread));
                pages += 1;
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
            assert_eq!(threads, holders, "in pages of {limit}");
            // A search that is always late gets one index query per page.
            if limit == 100 {
                let expected = if is_late() { 7 } else { 1 };
                assert_eq!(pages, expected);
            }
        }
    }
}

#[tokio::test]
async fn the_lag_covers_records_stored_when_it_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let journal = LocalJournal::open(&Options { folder: path }).unwrap();
    let first = thread(&journal, 1, &["one", "two"]).await;
    // A fork that has only shared records has nothing to index.
    journal.fork(first, Seq(2), ThreadId::mint()).await.unwrap();
    catch_up(&journal, folder.path());
    drop(journal);
    // No indexer runs now.
    let index = index::open_to_write(folder.path()).unwrap();
    let shift_marks = |upto: i64| {
        index
            .execute("UPDATE mark SET upto = upto + ?1", [upto])
            .unwrap()
    };
    let lag = || {
        Archive::open(folder.path())
            .unwrap()
            .unwrap()
            .lag()
            .unwrap()
    };
    assert_eq!(lag().threads(), 0);
    shift_marks(-1);
    let mut measured = lag();
    assert_eq!(measured.threads(), 1);
    measured.refresh().unwrap();
    assert_eq!(measured.threads(), 1);
    shift_marks(1);
    measured.refresh().unwrap();
    assert_eq!(measured.threads(), 0);
}
