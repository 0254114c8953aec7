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

/// A thread with these names, one after the other.
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

/// Waits until everything that is stored is in the index.
fn catch_up(journal: &LocalJournal, folder: &Path) {
    let archive = Archive::open(folder).unwrap().unwrap();
    let mut lag = archive.lag().unwrap();
    while lag.threads() > 0 {
        journal.indexer.signal().hurry();
        std::thread::yield_now();
        lag.look().unwrap();
    }
}

#[tokio::test]
async fn pages_that_end_early_meet() {
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
            let mut found = Vec::new();
            let mut pages = 0;
            loop {
                let page = search_until(lists, folder.path(), "needle", &query, is_late);
                let page = page.unwrap();
                found.extend(page.entries.iter().map(|it| it.thread));
                pages += 1;
                query.cursor = page.next;
                if query.cursor.is_none() {
                    break;
                }
            }
            assert_eq!(found, holders, "in pages of {limit}");
            // Whoever is late for everything gets as far as one look at the index goes.
            if limit == 100 {
                let expected = if is_late() { 7 } else { 1 };
                assert_eq!(pages, expected);
            }
        }
    }
}

#[tokio::test]
async fn the_lag_is_what_was_stored_when_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let journal = LocalJournal::open(&Options { folder: path }).unwrap();
    let first = thread(&journal, 1, &["one", "two"]).await;
    // A fork without a record of its own has nothing to be taken in.
    journal.fork(first, Seq(2), ThreadId::mint()).await.unwrap();
    catch_up(&journal, folder.path());
    drop(journal);
    // Nobody keeps the index up to date now.
    let index = index::open_to_write(folder.path()).unwrap();
    let marks = |upto: i64| {
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
    marks(-1);
    let mut behind = lag();
    assert_eq!(behind.threads(), 1);
    behind.look().unwrap();
    assert_eq!(behind.threads(), 1);
    marks(1);
    behind.look().unwrap();
    assert_eq!(behind.threads(), 0);
}
