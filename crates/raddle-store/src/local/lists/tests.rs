#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use raddle_core::ports::Journal;
use raddle_core::{Class, Event, Record, Renamed, Settings, ThreadSource, ThreadStarted};

use super::*;
use crate::local::schema;
use crate::{LocalJournal, Options};

/// A thread of a name, in a folder.
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

/// However few threads a page may look at in vain, together the pages have what one page would have.
#[tokio::test]
async fn pages_that_end_early_meet() {
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
            for (limit, looks) in [(1, 1), (2, 5), (100, 7), (3, 1000)] {
                let (mut found, mut cursor, mut pages) = (Vec::new(), None, 0);
                loop {
                    let page = lists.page_within(&query(limit, cursor), looks).unwrap();
                    found.extend(page.entries);
                    pages += 1;
                    cursor = page.next;
                    if cursor.is_none() {
                        break;
                    }
                }
                assert_eq!(found, whole.entries, "{cwds:?} {limit} {looks}");
                assert!(pages > 1, "{cwds:?} {limit} {looks}");
            }
        }
    }
}
