//! Files that older versions wrote, one of each layout, compressed. They are never regenerated:
//! they must stay readable for ever.

use std::fs::{self, File};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use raddle_core::ports::{Activity, Journal, ListQuery, PageQuery, Pages, Summary};
use raddle_core::{Record, Seq, Thread, ThreadId};
use raddle_store::{Archive, LocalJournal, Options};
use rusqlite::Connection;

use crate::makers::local;
use crate::records::{ThreadScript, renamed};

/// Older layouts, and the one that this version writes.
const OLDER: [i64; 1] = [1];
const NEWEST: i64 = 2;

/// Threads that were stored in a file.
type StoredThreads = Vec<(ThreadId, Vec<Record>)>;

fn packed_home(layout: i64) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/layout");
    tests.join(layout.to_string())
}

fn unpack(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            unpack(&path, &to.join(path.file_name().unwrap()));
        } else {
            let bytes = zstd::decode_all(File::open(&path).unwrap()).unwrap();
            fs::write(to.join(path.file_stem().unwrap()), bytes).unwrap();
        }
    }
}

/// Creates a home of a layout. Also returns its stored threads.
fn home(layout: i64) -> (tempfile::TempDir, StoredThreads) {
    let folder = tempfile::tempdir().unwrap();
    unpack(&packed_home(layout), folder.path());
    let lines = fs::read(folder.path().join("records.jsonl")).unwrap();
    let mut stored = StoredThreads::new();
    for line in lines.lines() {
        let (thread, record) = serde_json::from_str(&line.unwrap()).unwrap();
        match stored.last_mut() {
            Some((last, records)) if *last == thread => records.push(record),
            _ => stored.push((thread, vec![record])),
        }
    }
    assert_eq!(layout_of(folder.path()), layout);
    (folder, stored)
}

fn layout_of(folder: &Path) -> i64 {
    let connection = Connection::open(folder.join("journal.sqlite")).unwrap();
    let layout = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    layout.unwrap()
}

/// Checks that everything is served as it was stored, and that `verify` finds no damage.
async fn check_served(journal: &LocalJournal, folder: &Path, stored: &StoredThreads) {
    let mut listed = Vec::new();
    let archive = Archive::open(folder).unwrap().unwrap();
    assert_eq!(archive.check_file().unwrap(), Vec::<String>::new());
    for (thread, records) in stored {
        assert_eq!(archive.verify(*thread).unwrap().damage, []);
        let read = journal.read(*thread, Seq::ZERO, usize::MAX).await;
        assert_eq!(read.as_ref(), Ok(records));
        let mut folded = Thread::new();
        records.iter().for_each(|record| folded.apply(record));
        // The list rows of an older version name no owner and no work.
        let older = Summary::of(&folded).map(|it| Summary {
            activity: Activity::default(),
            ..it
        });
        listed.extend(older.filter(|it| !it.archived));
        if let Some(mut base) = journal.base(*thread, None).await.unwrap() {
            let after = base.thread.head();
            let rest = records.iter().filter(|record| record.seq > after);
            rest.for_each(|record| base.thread.apply(record));
            assert_eq!(base.thread, folded);
        }
        let items = |turn| journal.items(*thread, Some(turn), page());
        for turn in journal.turns(*thread, page()).await.unwrap().entries {
            assert_ne!(items(turn.turn).await.unwrap().entries, []);
        }
        assert_eq!(items("none".into()).await.unwrap().entries, []);
    }
    let query = ListQuery {
        limit: 100,
        ..ListQuery::default()
    };
    listed.sort_by_key(|it| (it.recency_at, it.thread));
    listed.reverse();
    assert_eq!(journal.list(query).await.unwrap().entries, listed);
}

/// Checks that a list shows what the records say, with the owner and the work of the thread.
async fn check_summary(journal: &LocalJournal, folder: &Path, thread: ThreadId) {
    let mut folded = Thread::new();
    let records = journal.read(thread, Seq::ZERO, usize::MAX).await;
    records.unwrap().iter().for_each(|it| folded.apply(it));
    let archive = Archive::open(folder).unwrap().unwrap();
    let summary = archive.summary(thread).unwrap();
    assert_eq!(summary, Summary::of(&folded));
    assert!(summary.is_none_or(|it| it.activity != Activity::default()));
}

fn page() -> PageQuery {
    PageQuery {
        limit: 100,
        ..PageQuery::default()
    }
}

#[tokio::test]
async fn an_older_file_is_read_as_it_is() {
    for layout in OLDER {
        let (folder, stored) = home(layout);
        let options = Options {
            folder: folder.path().to_owned(),
        };
        let journal = LocalJournal::open_to_read(&options).unwrap();
        check_served(&journal, folder.path(), &stored).await;
        assert_eq!(layout_of(folder.path()), layout);
    }
}

#[tokio::test]
async fn an_older_file_is_migrated() {
    for layout in OLDER {
        let (folder, stored) = home(layout);
        let journal = local(folder.path());
        assert_eq!(layout_of(folder.path()), NEWEST);
        check_served(&journal, folder.path(), &stored).await;
        for (thread, records) in &stored {
            let mut script = ThreadScript {
                thread: *thread,
                head: records.last().unwrap().seq,
                now: 1_000_000,
            };
            script.append(&journal, vec![renamed("later")]).await;
            // With its next change, the list row has all of it.
            check_summary(&journal, folder.path(), *thread).await;
            script.turn(&journal, "later", "on").await;
            let fork = script.fork(&journal, script.head).await;
            journal.delete(fork.thread).await.unwrap();
        }
        // Once migrated, the file is not migrated again.
        drop(journal);
        let journal = local(folder.path());
        let archive = Archive::open(folder.path()).unwrap().unwrap();
        for (thread, records) in &stored {
            assert_eq!(archive.verify(*thread).unwrap().damage, []);
            let read = journal.read(*thread, Seq::ZERO, usize::MAX).await.unwrap();
            assert!(read.len() > records.len());
        }
    }
}

/// A new file has the same tables and indexes as a migrated one.
#[test]
fn a_migrated_file_equals_a_new_one() {
    let schema = |folder: &Path| {
        drop(local(folder));
        let connection = Connection::open(folder.join("journal.sqlite")).unwrap();
        let sql = "SELECT name, sql FROM sqlite_schema ORDER BY name";
        let mut statement = connection.prepare(sql).unwrap();
        let all = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        let all = all.unwrap().map(Result::unwrap);
        all.collect::<Vec<(String, Option<String>)>>()
    };
    let new = tempfile::tempdir().unwrap();
    let new = schema(new.path());
    for layout in OLDER {
        assert_eq!(schema(home(layout).0.path()), new);
    }
}
