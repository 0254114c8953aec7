//! What is damaged of one thread, or of what is made from it, keeps nothing else from being served.

use raddle_core::ports::{AppendError, Journal, ListQuery, PageQuery, Pages, ReadError, Summary};
use raddle_core::{Base, Seq, Thread};
use raddle_store::{Archive, DamageKind, LocalJournal};
use rusqlite::Connection;

use super::{DamagedPair, pair};
use crate::records::{ThreadScript, class_of, renamed};
use crate::suite::local;

async fn listed(journal: &LocalJournal) -> Result<Vec<Summary>, ReadError> {
    let query = ListQuery {
        limit: 100,
        ..ListQuery::default()
    };
    let page = journal.list(query).await?;
    assert_eq!(page.next, None);
    Ok(page.entries)
}

/// The threads that hold a word, once the index has come that far.
async fn found(journal: &LocalJournal, pair: &DamagedPair) -> Result<Vec<Summary>, ReadError> {
    let archive = Archive::open(pair.folder.path()).unwrap().unwrap();
    let mut lag = archive.lag().unwrap();
    loop {
        let query = ListQuery {
            limit: 100,
            ..ListQuery::default()
        };
        let found = journal.search("two".to_owned(), query).await?;
        if lag.threads() == 0 {
            return Ok(found.entries);
        }
        tokio::task::yield_now().await;
        lag.look().unwrap();
    }
}

impl DamagedPair {
    /// The same change to the damaged thread, by its number.
    fn hit(&self, sql: &str) {
        self.change(|connection: &Connection, number| {
            assert_eq!(connection.execute(sql, [number]), Ok(1), "{sql}");
        });
    }
}

#[tokio::test]
async fn a_list_goes_on_without_a_thread_that_was_hit() {
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
        assert_eq!(found(&journal, &pair).await, Ok(before.clone()));
        drop(journal);
        pair.hit(sql);
        if !is_shown {
            before.retain(|it| it.thread == pair.whole.thread);
        }
        let journal = local(pair.folder.path());
        assert_eq!(listed(&journal).await, Ok(before.clone()), "{sql}");
        assert_eq!(found(&journal, &pair).await, Ok(before), "{sql}");
    }
}

/// What lists had is made again with the next record, and nothing is wrong any more.
#[tokio::test]
async fn a_list_that_was_hit_is_mended_by_what_comes_next() {
    let mut pair = pair().await;
    pair.hit("UPDATE summary SET preview = 'other' WHERE number = ?1");
    let journal = local(pair.folder.path());
    pair.hurt.append(&journal, vec![renamed("later")]).await;
    let listed = listed(&journal).await.unwrap();
    let names: Vec<_> = listed.iter().map(|it| it.name.as_deref()).collect();
    assert_eq!(names, [Some("later"), None]);
    assert_eq!(listed[0].preview, "one");
    let archive = Archive::open(pair.folder.path()).unwrap().unwrap();
    assert_eq!(archive.verify(pair.hurt.thread).unwrap().damage, []);
}

#[tokio::test]
async fn a_thread_whose_pages_were_hit_goes_on() {
    let mut pair = pair().await;
    pair.hit(
        "UPDATE item SET before = 0 WHERE at = (SELECT max(at) FROM item WHERE at >> 36 = ?1)",
    );
    let journal = local(pair.folder.path());
    let query = PageQuery {
        limit: 10,
        ..PageQuery::default()
    };
    let items = journal.items(pair.hurt.thread, None, query).await;
    assert!(matches!(items, Err(ReadError::Corrupt { .. })), "{items:?}");
    pair.hurt.append(&journal, vec![renamed("later")]).await;
}

/// Another process deletes it and brings it back: it has another number then, and nothing is wrong with it.
#[tokio::test]
async fn a_damaged_thread_that_comes_back_takes_appends() {
    let mut pair = pair().await;
    pair.hit("UPDATE event SET time = time + 1 WHERE at = (?1 << 36) + 4");
    let journal = local(pair.folder.path());
    let read = journal.read(pair.hurt.thread, Seq::ZERO, usize::MAX).await;
    assert!(matches!(read, Err(ReadError::Corrupt { at: Seq(4), .. })));
    let after = pair.hurt.head;
    let records = pair.hurt.records(vec![renamed("more")]);
    let refused = journal.append(pair.hurt.thread, after, &records, class_of(&records));
    assert!(matches!(refused.await, Err(AppendError::ReadOnly(_))));
    let mut again = ThreadScript {
        thread: pair.hurt.thread,
        ..ThreadScript::new()
    };
    let other = local(pair.folder.path());
    other.delete(again.thread).await.unwrap();
    again.start(&other, "/w").await;
    again.turn(&journal, "t1", "and on").await;
}

#[tokio::test]
async fn a_fork_whose_seam_was_hit_is_told_of_and_others_are_verified() {
    let pair = pair().await;
    let journal = local(pair.folder.path());
    let fork = pair.hurt.fork(&journal, Seq(7)).await;
    drop(journal);
    pair.change(|connection, _| {
        let sql = "UPDATE part SET upto = upto - 1";
        assert_eq!(connection.execute(sql, []), Ok(1));
    });
    let archive = Archive::open(pair.folder.path()).unwrap().unwrap();
    let damage = archive.verify(fork.thread).unwrap().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!(damage[0].kind, DamageKind::Record);
    let what = "what the fork took over is not what was written";
    assert!(damage[0].what.contains(what), "{damage:?}");
    for thread in [pair.whole.thread, pair.hurt.thread] {
        assert_eq!(archive.verify(thread).unwrap().damage, []);
    }
}

/// A column that is of another type than was written, as a bit of a row's header makes it.
#[tokio::test]
async fn a_base_of_the_wrong_kind_is_passed_over() {
    for column in ["sum", "body"] {
        let pair = pair().await;
        let journal = local(pair.folder.path());
        let thread = pair.hurt.thread;
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
