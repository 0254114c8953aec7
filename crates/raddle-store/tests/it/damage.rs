//! What was stored and is no longer as it was: the thread says so, and the others do not notice.

mod lists;
mod rows;
mod salvage;
mod undetected;

use std::path::Path;

use raddle_core::Seq;
use raddle_core::ports::{AppendError, Journal, PageQuery, Pages, ReadError};
use raddle_store::{Archive, DamageKind, Extent, Salvage};
use rusqlite::{Connection, params};

use crate::records::{ThreadScript, completed, delta, item_started, renamed};
use crate::suite::local;

/// Two threads, one of which is then damaged behind the journal's back.
struct DamagedPair {
    folder: tempfile::TempDir,
    whole: ThreadScript,
    hurt: ThreadScript,
}

async fn pair() -> DamagedPair {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let (mut whole, mut hurt) = (ThreadScript::new(), ThreadScript::new());
    for script in [&mut whole, &mut hurt] {
        script.start(&journal, "/w").await;
        script.turn(&journal, "t1", "one").await;
        script.turn(&journal, "t2", "two").await;
        let long = "long ".repeat(20_000);
        script
            .append(&journal, vec![completed("t2", "long", &long)])
            .await;
        script.append(&journal, vec![item_started("t2", "i")]).await;
        script.append(&journal, vec![delta("i", 0, "ab")]).await;
        script.append(&journal, vec![delta("i", 2, "cd")]).await;
    }
    DamagedPair {
        folder,
        whole,
        hurt,
    }
}

impl DamagedPair {
    /// Changes the file, and says where the damaged thread breaks off.
    async fn hurt(&self, change: impl FnOnce(&Connection, i64)) -> Result<usize, Seq> {
        {
            let connection = Connection::open(file(self.folder.path())).unwrap();
            let number = connection
                .query_row(
                    "SELECT number FROM thread WHERE id = ?1",
                    [self.hurt.thread.as_uuid().as_bytes()],
                    |row| row.get(0),
                )
                .unwrap();
            change(&connection, number);
        }
        let journal = local(self.folder.path());
        let all = journal.read(self.whole.thread, Seq::ZERO, usize::MAX).await;
        assert_eq!(all.unwrap().last().unwrap().seq, self.whole.head);
        let hurt = journal.read(self.hurt.thread, Seq::ZERO, usize::MAX).await;
        match hurt {
            Ok(records) => Ok(records.len()),
            Err(ReadError::Corrupt { at, .. }) => Err(at),
            Err(other) => panic!("{other:?}"),
        }
    }
}

fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("journal.sqlite")
}

/// Moves the log into the file, as a journal does from time to time.
fn move_log(folder: &Path) {
    let connection = Connection::open(file(folder)).unwrap();
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    assert_eq!(busy, Ok(0));
}

fn key(number: i64, seq: i64) -> i64 {
    (number << 36) + seq
}

#[tokio::test]
async fn nothing_is_wrong_with_what_nobody_touched() {
    let pair = pair().await;
    let records = pair.hurt(|_, _| {}).await;
    assert_eq!(records, Ok(16));
}

#[tokio::test]
async fn a_changed_body() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), 'one', 'two') AS BLOB)
                   WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert_eq!(found.await, Err(Seq(4)));
}

#[tokio::test]
async fn a_changed_time() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "UPDATE event SET time = time + 1 WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 5)]), Ok(1));
    });
    assert_eq!(found.await, Err(Seq(5)));
}

#[tokio::test]
async fn an_event_that_vanished_from_the_middle() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "DELETE FROM event WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    // The next one no longer follows from the one before it.
    assert_eq!(found.await, Err(Seq(5)));
}

#[tokio::test]
async fn events_that_vanished_from_the_end() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "DELETE FROM event WHERE at BETWEEN ?1 AND ?2";
        let range = [key(number, 10), key(number, 1000)];
        assert!(connection.execute(sql, range).unwrap() > 3);
    });
    assert!(found.await.is_err());
}

#[tokio::test]
async fn two_events_that_changed_places() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        for (from, to) in [(3, 900), (4, 3), (900, 4)] {
            let sql = "UPDATE event SET at = ?2 WHERE at = ?1";
            let moved = connection.execute(sql, [key(number, from), key(number, to)]);
            assert_eq!(moved, Ok(1));
        }
    });
    assert_eq!(found.await, Err(Seq(3)));
}

#[tokio::test]
async fn an_event_from_another_thread() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        // The same record of the other thread, with its own hash.
        let sql = "UPDATE event SET (time, body, chain) =
                   (SELECT time, body, chain FROM event WHERE at = ?2) WHERE at = ?1";
        let moved = connection.execute(sql, [key(number, 3), key(number - 1, 3)]);
        assert_eq!(moved, Ok(1));
    });
    assert_eq!(found.await, Err(Seq(3)));
}

#[tokio::test]
async fn a_changed_delta() {
    let pair = pair().await;
    let last = pair.hurt.head;
    let found = pair.hurt(|connection, number| {
        let sql = "UPDATE delta SET text = 'ce' WHERE at = ?1";
        let at = key(number, i64::try_from(last.0).unwrap());
        assert_eq!(connection.execute(sql, [at]), Ok(1));
    });
    assert_eq!(found.await, Err(last));
}

#[tokio::test]
async fn a_value_of_the_wrong_kind() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "UPDATE event SET chain = x'00' WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert!(found.await.is_err());
}

#[tokio::test]
async fn a_head_that_was_set_back() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "UPDATE thread SET head = 5 WHERE number = ?1";
        assert_eq!(connection.execute(sql, params![number]), Ok(1));
    });
    assert!(found.await.is_err());
}

#[tokio::test]
async fn a_file_beside_the_journal_that_is_not_what_its_name_says() {
    let pair = pair().await;
    let mut files = Vec::new();
    for folder in std::fs::read_dir(pair.folder.path().join("blobs")).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    // Both threads have the same long text, and so the same file.
    assert_eq!(files.len(), 1);
    let mut bytes = std::fs::read(&files[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&files[0], bytes).unwrap();
    let journal = local(pair.folder.path());
    let read = journal.read(pair.hurt.thread, Seq::ZERO, usize::MAX).await;
    assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{read:?}");
}

#[tokio::test]
async fn a_damaged_thread_takes_no_more_and_others_do() {
    let mut pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "DELETE FROM event WHERE at BETWEEN ?1 AND ?2";
        let range = [key(number, 10), key(number, 1000)];
        assert!(connection.execute(sql, range).unwrap() > 3);
    });
    assert!(found.await.is_err());
    let journal = local(pair.folder.path());
    let after = pair.hurt.head;
    let records = pair.hurt.records(vec![renamed("more")]);
    let class = crate::records::class_of(&records);
    let refused = journal.append(pair.hurt.thread, after, &records, class);
    assert!(matches!(refused.await, Err(AppendError::ReadOnly(_))));
    pair.whole.append(&journal, vec![renamed("more")]).await;
}

#[tokio::test]
async fn a_damaged_item_is_not_shown() {
    let pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "UPDATE event SET body = x'7b7d' WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert_eq!(found.await, Err(Seq(4)));
    let journal = local(pair.folder.path());
    let query = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let items = journal.items(pair.hurt.thread, None, query.clone()).await;
    assert!(matches!(items, Err(ReadError::Corrupt { at: Seq(4), .. })));
    let items = journal.items(pair.whole.thread, None, query).await;
    assert_eq!(items.unwrap().entries.len(), 5);
}

#[tokio::test]
async fn a_thread_that_is_damaged_anywhere_takes_no_more_once_that_was_read() {
    let mut pair = pair().await;
    let found = pair.hurt(|connection, number| {
        let sql = "UPDATE event SET time = time + 1 WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert_eq!(found.await, Err(Seq(4)));
    let journal = local(pair.folder.path());
    let read = journal.read(pair.hurt.thread, Seq::ZERO, usize::MAX).await;
    assert!(matches!(read, Err(ReadError::Corrupt { at: Seq(4), .. })));
    let after = pair.hurt.head;
    let records = pair.hurt.records(vec![renamed("more")]);
    let class = crate::records::class_of(&records);
    let refused = journal.append(pair.hurt.thread, after, &records, class);
    let refused = refused.await;
    assert!(
        matches!(&refused, Err(AppendError::ReadOnly(why)) if why.contains("record 4")),
        "{refused:?}"
    );
    pair.whole.append(&journal, vec![renamed("more")]).await;
    // Deleting it ends that: whoever brings it back brings it back whole.
    journal.delete(pair.hurt.thread).await.unwrap();
    let mut again = ThreadScript {
        thread: pair.hurt.thread,
        ..ThreadScript::new()
    };
    again.start(&journal, "/w").await;
}

/// Whatever its row says then: that it is being deleted, that it ends elsewhere, that it was forked.
#[tokio::test]
async fn a_thread_whose_row_was_hit_says_so_and_is_saved_and_deleted() {
    for change in [
        "going = 1",
        "going = 444250812007",
        "head = head - 1",
        "origin = x'00112233445566778899aabbccddeeff'",
        "item = item - 1",
        "listed = NULL",
    ] {
        let pair = pair().await;
        let found = pair.hurt(|connection, number| {
            let sql = format!("UPDATE thread SET {change} WHERE number = ?1");
            assert_eq!(connection.execute(&sql, [number]), Ok(1), "{change}");
        });
        assert_eq!(found.await, Err(Seq::ZERO), "{change}");
        let (folder, thread) = (pair.folder.path(), pair.hurt.thread);
        let archive = Archive::open(folder).unwrap().unwrap();
        let threads = archive.threads().unwrap();
        assert_eq!(threads, [pair.whole.thread, thread], "{change}");
        let damage = archive.verify(thread).unwrap().damage;
        assert_eq!(damage[0].kind, DamageKind::Record, "{change}");
        let mut out = Vec::new();
        let exported = Salvage::new(folder).export(thread, &mut out, Extent::Whole);
        assert_eq!(exported.unwrap().end.records, 16, "{change}");
        let journal = local(folder);
        journal.delete(thread).await.unwrap();
        let mut again = ThreadScript {
            thread,
            ..ThreadScript::new()
        };
        again.start(&journal, "/w").await;
    }
}
