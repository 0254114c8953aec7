//! Files of other versions, and a folder that several processes open at once.

mod old_layouts;

use raddle_core::ports::{AppendError, Journal, ListQuery, Pages, ReadError};
use raddle_core::{Class, Record, Seq};
use raddle_store::{LocalJournal, Options};
use rusqlite::Connection;

use crate::makers::local;
use crate::records::ThreadScript;

/// Changes the layout number of a file.
fn shift(connection: &Connection, by: i64) {
    for what in ["user_version", "application_id"] {
        let now: i64 = connection
            .pragma_query_value(None, what, |row| row.get(0))
            .unwrap();
        connection.pragma_update(None, what, now + by).unwrap();
    }
}

#[tokio::test]
async fn a_newer_file_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = ThreadScript::new();
    script.start(&local(folder.path()), "/w").await;
    let file = folder.path().join("journal.sqlite");
    shift(&Connection::open(&file).unwrap(), 100);
    let options = Options {
        folder: folder.path().to_owned(),
    };
    let result = LocalJournal::open(&options);
    assert!(matches!(result, Err(ReadError::Newer(_))), "{result:?}");
    // The attempt changed nothing.
    shift(&Connection::open(&file).unwrap(), -100);
    let journal = local(folder.path());
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
}

#[tokio::test]
async fn a_file_that_becomes_newer_is_rejected_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = ThreadScript::new();
    let journal = local(folder.path());
    script.start(&journal, "/w").await;
    let head = script.head;
    assert_eq!(journal.head(script.thread).await, Ok(head));
    // Another process, of a later version, migrates the same folder.
    let other = Connection::open(folder.path().join("journal.sqlite")).unwrap();
    shift(&other, 100);
    let records = [Record {
        seq: head.next(),
        at: raddle_core::Timestamp(1),
        body: crate::records::renamed("other"),
    }];
    let thread = script.thread;
    for _ in 0..3 {
        let append = journal.append(thread, head, &records, Class::Power).await;
        assert!(matches!(append, Err(AppendError::Newer(_))), "{append:?}");
        let read = journal.read(thread, Seq::ZERO, usize::MAX).await;
        assert!(matches!(read, Err(ReadError::Newer(_))), "{read:?}");
        let head = journal.head(thread).await;
        assert!(matches!(head, Err(ReadError::Newer(_))), "{head:?}");
        let list = journal.list(ListQuery::default()).await;
        assert!(matches!(list, Err(ReadError::Newer(_))), "{list:?}");
    }
    shift(&other, -100);
    assert_eq!(journal.head(thread).await, Ok(head));
    let append = journal.append(thread, head, &records, Class::Power).await;
    assert_eq!(append, Ok(head.next()));
}

/// A damaged layout number is damage, not another version, so the data can be salvaged.
#[tokio::test]
async fn a_damaged_layout_number_is_not_a_newer_version() {
    let folder = tempfile::tempdir().unwrap();
    ThreadScript::new().start(&local(folder.path()), "/w").await;
    let options = Options {
        folder: folder.path().to_owned(),
    };
    for layout in [0, 3, 1 << 20] {
        let file = folder.path().join("journal.sqlite");
        let connection = Connection::open(file).unwrap();
        connection
            .pragma_update(None, "user_version", layout)
            .unwrap();
        drop(connection);
        for opened in [
            LocalJournal::open(&options),
            LocalJournal::open_to_read(&options),
        ] {
            let damaged = matches!(opened, Err(ReadError::Corrupt { .. }));
            assert!(damaged, "{layout}: {opened:?}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_no_journal_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal.sqlite");
    let text = "someone's notes, which are no database at all\n".repeat(100);
    std::fs::write(&file, &text).unwrap();
    let options = Options {
        folder: folder.path().to_owned(),
    };
    let result = LocalJournal::open(&options);
    assert!(
        matches!(result, Err(ReadError::Corrupt { .. })),
        "{result:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[tokio::test]
async fn everything_is_preserved_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = ThreadScript::new();
    let journal = local(folder.path());
    script.start(&journal, "/w").await;
    script.turn(&journal, "t1", "one").await;
    let before = journal.read(script.thread, Seq::ZERO, usize::MAX);
    let before = before.await.unwrap();
    drop(journal);
    let journal = local(folder.path());
    let after = journal.read(script.thread, Seq::ZERO, usize::MAX);
    assert_eq!(after.await, Ok(before));
    script.turn(&journal, "t2", "two").await;
}

#[test]
fn many_open_an_empty_folder_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let threads: Vec<_> = (0..16)
        .map(|_| {
            let path = folder.path().join("new");
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = { runtime }.build().unwrap();
                runtime.block_on(async {
                    let journal = local(&path);
                    let mut script = ThreadScript::new();
                    script.start(&journal, "/w").await;
                    script.turn(&journal, "t", "go").await;
                    script.thread
                })
            })
        })
        .collect();
    let mut started: Vec<_> = threads.into_iter().map(|it| it.join().unwrap()).collect();
    started.sort();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().unwrap();
    runtime.block_on(async {
        let journal = local(&folder.path().join("new"));
        let query = ListQuery {
            limit: 100,
            ..ListQuery::default()
        };
        let page = journal.list(query).await.unwrap();
        let mut listed: Vec<_> = page.entries.iter().map(|it| it.thread).collect();
        listed.sort();
        assert_eq!(listed, started);
    });
}

#[tokio::test]
async fn a_deleted_thread_leaves_nothing_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let marker = "c41f7e0b9d2a4e6f8b1c3d5e7f9a0b2c";
    let mut other = ThreadScript::new();
    other.start(&journal, "/w").await;
    let mut script = ThreadScript::new();
    script.start(&journal, marker).await;
    script.turn(&journal, "t1", marker).await;
    let long = "0123456789".repeat(20_000) + marker;
    let bodies = vec![
        crate::records::completed("t1", "long", &long),
        crate::records::renamed(marker),
        crate::records::item_started("t1", "i"),
    ];
    script.append(&journal, bodies).await;
    let bodies = vec![crate::records::delta("i", 0, marker)];
    script.append(&journal, bodies).await;
    assert!(contains_marker(folder.path(), marker.as_bytes()));
    journal.delete(script.thread).await.unwrap();
    drop(journal);
    assert!(!contains_marker(folder.path(), marker.as_bytes()));
    assert!(!contains_marker(
        folder.path(),
        script.thread.as_uuid().as_bytes()
    ));
    assert!(contains_marker(
        folder.path(),
        other.thread.as_uuid().as_bytes()
    ));
}

pub fn contains_marker(folder: &std::path::Path, marker: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return contains_marker(&path, marker);
        }
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(marker.len()).any(|window| window == marker)
    })
}

#[tokio::test]
async fn a_journal_that_is_closed_leaves_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("journal.sqlite-wal");
    let mut script = ThreadScript::new();
    for round in 0..5 {
        let journal = local(folder.path());
        if round == 0 {
            script.start(&journal, "/w").await;
        }
        script.turn(&journal, &format!("t{round}"), "words").await;
        // Reader threads have the file open too.
        for _ in 0..8 {
            assert_eq!(journal.head(script.thread).await, Ok(script.head));
        }
        assert!(log.exists());
        drop(journal);
        assert!(!log.exists());
    }
}

#[tokio::test]
async fn the_folder_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("threads");
    let _journal = local(&folder);
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// A newer owner may write events that this version misreads: its thread is not read, the others
/// are.
#[tokio::test]
async fn a_thread_of_a_newer_owner_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let (mut newer, mut ours) = (ThreadScript::new(), ThreadScript::new());
    newer.start(&journal, "/w").await;
    ours.start(&journal, "/w").await;
    let mut owned = crate::records::owned();
    if let raddle_core::RecordBody::Event(event) = &mut owned
        && let raddle_core::Event::Owned(it) = &mut **event
    {
        it.level = raddle_core::LEVEL + 1;
    }
    newer.append(&journal, vec![owned]).await;
    let read = journal.read(newer.thread, Seq::ZERO, 1 << 20).await;
    assert!(matches!(read, Err(ReadError::Newer(_))), "{read:?}");
    let read = journal.read(ours.thread, Seq::ZERO, 1 << 20).await;
    assert!(read.is_ok(), "{read:?}");
}
