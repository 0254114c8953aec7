#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use raddle_core::ports::Journal;
use raddle_core::{Class, Event, Record, Renamed, Settings, ThreadSource, ThreadStarted};

use super::*;
use crate::local::schema;
use crate::{LocalJournal, Options};

/// Creates a thread with a name, in a folder.
async fn thread(journal: &LocalJournal, at: i64, cwd: &str, name: &str) -> ThreadId {
    let thread = ThreadId::mint();
    let started = Event::ThreadStarted(ThreadStarted {
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
        settings: Settings {
            cwd: cwd.to_owned(),
            ..Settings::default()
        },
    });
    let renamed = Event::Renamed(Renamed {
        name: Some(name.to_owned()),
        principal: None,
    });
    let records: Vec<Record> = (1..)
        .zip([started, renamed])
        .map(|(seq, event)| Record {
            seq: Seq(seq),
            at: Timestamp(at),
            body: event.into(),
        })
        .collect();
    let appended = journal.append(thread, Seq::ZERO, &records, Class::Process);
    appended.await.unwrap();
    thread
}

/// Pages that stop early have, taken together, the same entries as one large page.
#[tokio::test]
async fn pages_that_end_early_join_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        folder: folder.path().to_owned(),
    };
    let journal = LocalJournal::open(&options).unwrap();
    for at in 0..60 {
        let name = if at % 7 == 3 { "die GRÖSSE" } else { "other" };
        thread(&journal, at / 2, &format!("/w{}", at % 3), name).await;
    }
    let connection = schema::open_to_read(folder.path()).unwrap();
    let lists = Lists {
        connection: &connection,
        files: &journal.files,
        quarantine: &journal.quarantine,
    };
    for cwds in [&[][..], &["/w0", "/w1"], &["/w0", "/w1", "/w2", "/none"]] {
        for oldest_first in [false, true] {
            let query = |limit, cursor| ListQuery {
                cwds: cwds.iter().map(|it| (*it).to_owned()).collect(),
                sources: Some(vec![ThreadSource::Cli]),
                title: Some("größe".replace('ß', "ss")),
                oldest_first,
                cursor,
                limit,
                ..ListQuery::default()
            };
            let whole = lists.page_within(&query(100, None), usize::MAX).unwrap();
            assert_eq!(whole.next, None);
            assert!(whole.entries.len() > 4);
            for (limit, misses_max) in [(1, 1), (2, 5), (100, 7), (3, 1000)] {
                let (mut entries, mut cursor, mut pages) = (Vec::new(), None, 0);
                loop {
                    let page = lists
                        .page_within(&query(limit, cursor), misses_max)
                        .unwrap();
                    entries.extend(page.entries);
                    pages += 1;
                    cursor = page.next;
                    if cursor.is_none() {
                        break;
                    }
                }
                assert_eq!(entries, whole.entries, "{cwds:?} {limit} {misses_max}");
                assert!(pages > 1, "{cwds:?} {limit} {misses_max}");
            }
        }
    }
}
