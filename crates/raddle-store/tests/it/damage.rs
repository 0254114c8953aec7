//! Damaged data: the thread reports it, and the others are not affected.

mod lists;
mod rows;
mod salvage;
mod undetected;

use std::path::Path;

use raddle_core::Seq;
use raddle_core::ports::{AppendError, Journal, PageQuery, Pages, ReadError};
use raddle_store::{Archive, DamageKind, Extent, Salvage};
use rusqlite::{Connection, params};

use crate::makers::local;
use crate::records::{ThreadScript, completed, delta, item_started, renamed};

/// Two threads, one of which is then damaged behind the journal's back.
struct DamagedPair {
    folder: tempfile::TempDir,
    intact: ThreadScript,
    damaged: ThreadScript,
}

async fn pair() -> DamagedPair {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let (mut intact, mut damaged) = (ThreadScript::new(), ThreadScript::new());
    for script in [&mut intact, &mut damaged] {
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
        intact,
        damaged,
    }
}

impl DamagedPair {
    /// Changes the file. Returns the first damaged record of the damaged thread.
    async fn damage(&self, change: impl FnOnce(&Connection, i64)) -> Result<usize, Seq> {
        {
            let connection = Connection::open(file(self.folder.path())).unwrap();
            let number = connection
                .query_row(
                    "SELECT number FROM thread WHERE id = ?1",
                    [self.damaged.thread.as_uuid().as_bytes()],
                    |row| row.get(0),
                )
                .unwrap();
            change(&connection, number);
        }
        let journal = local(self.folder.path());
        let all = journal
            .read(self.intact.thread, Seq::ZERO, usize::MAX)
            .await;
        assert_eq!(all.unwrap().last().unwrap().seq, self.intact.head);
        let read = journal
            .read(self.damaged.thread, Seq::ZERO, usize::MAX)
            .await;
        match read {
            Ok(records) => Ok(records.len()),
            Err(ReadError::Corrupt { at, .. }) => Err(at),
            Err(other) => panic!("{other:?}"),
        }
    }
}

fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("journal.sqlite")
}

/// Checkpoints the WAL, as a journal does from time to time.
fn checkpoint(folder: &Path) {
    let connection = Connection::open(file(folder)).unwrap();
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    assert_eq!(busy, Ok(0));
}

fn key(number: i64, seq: i64) -> i64 {
    (number << 36) + seq
}

#[tokio::test]
async fn an_unchanged_journal_is_intact() {
    let pair = pair().await;
    let records = pair.damage(|_, _| {}).await;
    assert_eq!(records, Ok(16));
}

#[tokio::test]
async fn a_changed_body() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), 'one', 'two') AS BLOB)
                   WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert_eq!(result.await, Err(Seq(4)));
}

#[tokio::test]
async fn a_changed_time() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "UPDATE event SET time = time + 1 WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 5)]), Ok(1));
    });
    assert_eq!(result.await, Err(Seq(5)));
}

#[tokio::test]
async fn an_event_that_vanished_from_the_middle() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "DELETE FROM event WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    // The next one no longer follows from the previous one.
    assert_eq!(result.await, Err(Seq(5)));
}

#[tokio::test]
async fn events_that_vanished_from_the_end() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "DELETE FROM event WHERE at BETWEEN ?1 AND ?2";
        let range = [key(number, 10), key(number, 1000)];
        assert!(connection.execute(sql, range).unwrap() > 3);
    });
    assert!(result.await.is_err());
}

#[tokio::test]
async fn two_events_that_changed_places() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        for (from, to) in [(3, 900), (4, 3), (900, 4)] {
            let sql = "UPDATE event SET at = ?2 WHERE at = ?1";
            let moved = connection.execute(sql, [key(number, from), key(number, to)]);
            assert_eq!(moved, Ok(1));
        }
    });
    assert_eq!(result.await, Err(Seq(3)));
}

#[tokio::test]
async fn an_event_from_another_thread() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        // The same record of the other thread, with its own hash.
        let sql = "UPDATE event SET (time, body, chain) =
                   (SELECT time, body, chain FROM event WHERE at = ?2) WHERE at = ?1";
        let moved = connection.execute(sql, [key(number, 3), key(number - 1, 3)]);
        assert_eq!(moved, Ok(1));
    });
    assert_eq!(result.await, Err(Seq(3)));
}

#[tokio::test]
async fn a_changed_delta() {
    let pair = pair().await;
    let last = pair.damaged.head;
    let result = pair.damage(|connection, number| {
        let sql = "UPDATE delta SET text = 'ce' WHERE at = ?1";
        let at = key(number, i64::try_from(last.0).unwrap());
        assert_eq!(connection.execute(sql, [at]), Ok(1));
    });
    assert_eq!(result.await, Err(last));
}

#[tokio::test]
async fn a_value_of_the_wrong_kind() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "UPDATE event SET chain = x'00' WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert!(result.await.is_err());
}

#[tokio::test]
async fn a_head_that_was_set_back() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "UPDATE thread SET head = 5 WHERE number = ?1";
        assert_eq!(connection.execute(sql, params![number]), Ok(1));
    });
    assert!(result.await.is_err());
}

#[tokio::test]
async fn a_file_that_does_not_match_its_hash() {
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
    let read = journal
        .read(pair.damaged.thread, Seq::ZERO, usize::MAX)
        .await;
    assert!(matches!(read, Err(ReadError::Corrupt { .. })), "{read:?}");
}

#[tokio::test]
async fn a_damaged_thread_rejects_appends_and_others_accept_them() {
    let mut pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "DELETE FROM event WHERE at BETWEEN ?1 AND ?2";
        let range = [key(number, 10), key(number, 1000)];
        assert!(connection.execute(sql, range).unwrap() > 3);
    });
    assert!(result.await.is_err());
    let journal = local(pair.folder.path());
    let after = pair.damaged.head;
    let records = pair.damaged.records(vec![renamed("more")]);
    let class = crate::records::class_of(&records);
    let rejected = journal.append(pair.damaged.thread, after, &records, class);
    assert!(matches!(rejected.await, Err(AppendError::ReadOnly(_))));
    pair.intact.append(&journal, vec![renamed("more")]).await;
}

#[tokio::test]
async fn a_damaged_item_is_not_shown() {
    let pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "UPDATE event SET body = x'7b7d' WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert_eq!(result.await, Err(Seq(4)));
    let journal = local(pair.folder.path());
    let query = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let items = journal
        .items(pair.damaged.thread, None, query.clone())
        .await;
    assert!(matches!(items, Err(ReadError::Corrupt { at: Seq(4), .. })));
    let items = journal.items(pair.intact.thread, None, query).await;
    assert_eq!(items.unwrap().entries.len(), 5);
}

#[tokio::test]
async fn a_thread_rejects_appends_after_any_damage_was_read() {
    let mut pair = pair().await;
    let result = pair.damage(|connection, number| {
        let sql = "UPDATE event SET time = time + 1 WHERE at = ?1";
        assert_eq!(connection.execute(sql, [key(number, 4)]), Ok(1));
    });
    assert_eq!(result.await, Err(Seq(4)));
    let journal = local(pair.folder.path());
    let read = journal
        .read(pair.damaged.thread, Seq::ZERO, usize::MAX)
        .await;
    assert!(matches!(read, Err(ReadError::Corrupt { at: Seq(4), .. })));
    let after = pair.damaged.head;
    let records = pair.damaged.records(vec![renamed("more")]);
    let class = crate::records::class_of(&records);
    let rejected = journal.append(pair.damaged.thread, after, &records, class);
    let rejected = rejected.await;
    assert!(
        matches!(&rejected, Err(AppendError::ReadOnly(why)) if why.contains("record 4")),
        "{rejected:?}"
    );
    pair.intact.append(&journal, vec![renamed("more")]).await;
    // Deleting the thread ends that: a thread that is created again is intact.
    journal.delete(pair.damaged.thread).await.unwrap();
    let mut recreated = ThreadScript {
        thread: pair.damaged.thread,
        ..ThreadScript::new()
    };
    recreated.start(&journal, "/w").await;
}

/// Whatever the damaged row claims: a deletion, another end, a fork.
#[tokio::test]
async fn a_thread_with_a_damaged_row_is_reported_exported_and_deleted() {
    for change in [
        "going = 1",
        "going = 444250812007",
        "head = head - 1",
        "origin = x'00112233445566778899aabbccddeeff'",
        "item = item - 1",
        "listed = NULL",
    ] {
        let pair = pair().await;
        let result = pair.damage(|connection, number| {
            let sql = format!("UPDATE thread SET {change} WHERE number = ?1");
            assert_eq!(connection.execute(&sql, [number]), Ok(1), "{change}");
        });
        assert_eq!(result.await, Err(Seq::ZERO), "{change}");
        let (folder, thread) = (pair.folder.path(), pair.damaged.thread);
        let archive = Archive::open(folder).unwrap().unwrap();
        let threads = archive.threads().unwrap();
        assert_eq!(threads, [pair.intact.thread, thread], "{change}");
        let damage = archive.verify(thread).unwrap().damage;
        assert_eq!(damage[0].kind, DamageKind::Record, "{change}");
        let mut out = Vec::new();
        let exported = Salvage::new(folder).export(thread, &mut out, Extent::Whole);
        assert_eq!(exported.unwrap().end.records, 16, "{change}");
        let journal = local(folder);
        journal.delete(thread).await.unwrap();
        let mut recreated = ThreadScript {
            thread,
            ..ThreadScript::new()
        };
        recreated.start(&journal, "/w").await;
    }
}
