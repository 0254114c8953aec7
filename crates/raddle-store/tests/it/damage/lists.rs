//! Damage to one thread, or to data derived from it, does not affect anything else.

use raddle_core::ports::{AppendError, Journal, ListQuery, PageQuery, Pages, ReadError, Summary};
use raddle_core::{Base, Seq, Thread};
use raddle_store::{Archive, DamageKind, LocalJournal};
use rusqlite::Connection;

use super::{DamagedPair, pair};
use crate::makers::local;
use crate::records::{ThreadScript, class_of, renamed};

async fn listed(journal: &LocalJournal) -> Result<Vec<Summary>, ReadError> {
    let query = ListQuery {
        limit: 100,
        ..ListQuery::default()
    };
    let page = journal.list(query).await?;
    assert_eq!(page.next, None);
    Ok(page.entries)
}

/// Returns the threads that contain a word, once the index has caught up.
async fn search_all(journal: &LocalJournal, pair: &DamagedPair) -> Result<Vec<Summary>, ReadError> {
    let archive = Archive::open(pair.folder.path()).unwrap().unwrap();
    let mut lag = archive.lag().unwrap();
    loop {
        let query = ListQuery {
            limit: 100,
            ..ListQuery::default()
        };
        let page = journal.search("two".to_owned(), query).await?;
        if lag.threads() == 0 {
            return Ok(page.entries);
        }
        tokio::task::yield_now().await;
        lag.refresh().unwrap();
    }
}

impl DamagedPair {
    /// Changes one row of the damaged thread, by its number.
    fn damage_row(&self, sql: &str) {
        self.change(|connection: &Connection, number| {
            assert_eq!(connection.execute(sql, [number]), Ok(1), "{sql}");
        });
    }
}

#[tokio::test]
async fn a_list_skips_a_damaged_thread() {
    let last = "(SELECT max(at) FROM delta WHERE at >> 36 = ?1)";
    for (sql, is_shown) in [
        (
            "UPDATE summary SET preview = 'other' WHERE number = ?1",
            true,
        ),
        (
            "UPDATE summary SET turns = turns + 1 WHERE number = ?1",
            true,
        ),
        ("UPDATE summary SET rest = '{}' WHERE number = ?1", true),
        // Without its activity, a row looks like one of an older version.
        (
            "UPDATE summary SET rest = json_remove(rest, '$.activity') WHERE number = ?1",
            true,
        ),
        (
            "UPDATE summary SET rest = json_set(rest, '$.activity.openRequests', 7) WHERE number = ?1",
            true,
        ),
        (
            "UPDATE summary SET rest = json_set(rest, '$.principal', 'eve') WHERE number = ?1",
            true,
        ),
        ("UPDATE thread SET listed = NULL WHERE number = ?1", false),
        ("UPDATE thread SET head = head - 1 WHERE number = ?1", false),
        (
            &format!("UPDATE delta SET text = 'ce' WHERE at = {last}"),
            false,
        ),
    ] {
        let pair = pair().await;
        let journal = local(pair.folder.path());
        let mut before = listed(&journal).await.unwrap();
        assert_eq!(before.len(), 2);
        assert_eq!(search_all(&journal, &pair).await, Ok(before.clone()));
        drop(journal);
        pair.damage_row(sql);
        if !is_shown {
            before.retain(|it| it.thread == pair.intact.thread);
        }
        let journal = local(pair.folder.path());
        assert_eq!(listed(&journal).await, Ok(before.clone()), "{sql}");
        assert_eq!(search_all(&journal, &pair).await, Ok(before), "{sql}");
    }
}

/// The list row is rebuilt with the next record, and then nothing is damaged any more.
#[tokio::test]
async fn a_damaged_list_row_is_rebuilt_by_the_next_record() {
    let mut pair = pair().await;
    pair.damage_row("UPDATE summary SET preview = 'other' WHERE number = ?1");
    let journal = local(pair.folder.path());
    pair.damaged.append(&journal, vec![renamed("later")]).await;
    let listed = listed(&journal).await.unwrap();
    let names: Vec<_> = listed.iter().map(|it| it.name.as_deref()).collect();
    assert_eq!(names, [Some("later"), None]);
    assert_eq!(listed[0].preview, "one");
    let archive = Archive::open(pair.folder.path()).unwrap().unwrap();
    assert_eq!(archive.verify(pair.damaged.thread).unwrap().damage, []);
}

#[tokio::test]
async fn a_thread_with_damaged_pages_accepts_appends() {
    let mut pair = pair().await;
    pair.damage_row(
        "UPDATE item SET before = 0 WHERE at = (SELECT max(at) FROM item WHERE at >> 36 = ?1)",
    );
    let journal = local(pair.folder.path());
    let query = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let items = journal.items(pair.damaged.thread, None, query).await;
    assert!(matches!(items, Err(ReadError::Corrupt { .. })), "{items:?}");
    pair.damaged.append(&journal, vec![renamed("later")]).await;
}

/// Another process deletes the thread and creates it again: then it has another number and is
/// intact.
#[tokio::test]
async fn a_recreated_thread_accepts_appends() {
    let mut pair = pair().await;
    pair.damage_row("UPDATE event SET time = time + 1 WHERE at = (?1 << 36) + 4");
    let journal = local(pair.folder.path());
    let read = journal
        .read(pair.damaged.thread, Seq::ZERO, usize::MAX)
        .await;
    assert!(matches!(read, Err(ReadError::Corrupt { at: Seq(4), .. })));
    let after = pair.damaged.head;
    let records = pair.damaged.records(vec![renamed("more")]);
    let rejected = journal.append(pair.damaged.thread, after, &records, class_of(&records));
    assert!(matches!(rejected.await, Err(AppendError::ReadOnly(_))));
    let mut recreated = ThreadScript {
        thread: pair.damaged.thread,
        ..ThreadScript::new()
    };
    let other = local(pair.folder.path());
    other.delete(recreated.thread).await.unwrap();
    recreated.start(&other, "/w").await;
    recreated.turn(&journal, "t1", "and on").await;
}

#[tokio::test]
async fn a_fork_with_a_damaged_segment_is_reported_and_others_verify() {
    let pair = pair().await;
    let journal = local(pair.folder.path());
    let fork = pair.damaged.fork(&journal, Seq(7)).await;
    drop(journal);
    pair.change(|connection, _| {
        let sql = "UPDATE part SET upto = upto - 1";
        assert_eq!(connection.execute(sql, []), Ok(1));
    });
    let archive = Archive::open(pair.folder.path()).unwrap().unwrap();
    let damage = archive.verify(fork.thread).unwrap().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!(damage[0].kind, DamageKind::Record);
    let what = "the segment that the fork shares is damaged: its checksum does not match";
    assert!(damage[0].what.contains(what), "{damage:?}");
    for thread in [pair.intact.thread, pair.damaged.thread] {
        assert_eq!(archive.verify(thread).unwrap().damage, []);
    }
}

/// A column of another type than was written, as a flipped bit in a row's header makes it.
#[tokio::test]
async fn a_base_of_the_wrong_type_is_skipped() {
    for column in ["sum", "body"] {
        let pair = pair().await;
        let journal = local(pair.folder.path());
        let thread = pair.damaged.thread;
        let records = journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
        let mut folded = Thread::new();
        records.iter().for_each(|record| folded.apply(record));
        journal.save_base(thread, Base::of(&folded)).await.unwrap();
        assert!(journal.base(thread, None).await.unwrap().is_some());
        drop(journal);
        pair.change(|connection, _| {
            let loose = "PRAGMA writable_schema = on;
                 UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT', ''), 'BLOB', '')
                 WHERE name = 'base'";
            connection.execute_batch(loose).unwrap();
        });
        pair.change(|connection, _| {
            let sql = format!("UPDATE base SET {column} = 'text'");
            assert_eq!(connection.execute(&sql, []), Ok(1));
        });
        let journal = local(pair.folder.path());
        assert_eq!(journal.base(thread, None).await, Ok(None), "{column}");
        let archive = Archive::open(pair.folder.path()).unwrap().unwrap();
        assert_eq!(archive.verify(thread).unwrap().damage, [], "{column}");
    }
}
