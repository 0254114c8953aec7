//! A thread with damage outside its records accepts appends, and any damaged thread can be deleted.

use raddle_core::ports::{Journal, ListQuery, Pages, ReadError};
use raddle_core::{Seq, ThreadId};
use rusqlite::Connection;
use rusqlite::types::Value;

use super::{IdleJournal, flip_bit};
use crate::makers::local;
use crate::records::{ThreadScript, renamed};

#[tokio::test]
async fn a_thread_with_a_damaged_row_can_be_deleted() {
    let idle = IdleJournal::new().await;
    let (columns, rows) = idle.rows("thread");
    assert_eq!(columns[..2], ["number", "id"]);
    let mut hits = 0;
    for row in &rows[..2] {
        let Value::Blob(id) = &row[1] else {
            panic!("{row:?}");
        };
        let thread = ThreadId::from(uuid::Uuid::from_slice(id).unwrap());
        for (column, value) in columns.iter().zip(row).skip(2) {
            for bit in [0, 63] {
                let Some(value) = flip_bit(value, bit) else {
                    continue;
                };
                let sql = format!("UPDATE thread SET {column} = ?1 WHERE number = ?2");
                let what = format!("{sql}: {value:?} in {row:?}");
                let values = [&value, &row[0]];
                let change = |it: &Connection| it.execute(&sql, values).map(|_| ());
                assert!(idle.change(change), "{what}");
                let journal = local(idle.folder.path());
                assert_eq!(journal.delete(thread).await, Ok(()), "{what}");
                let read = journal.read(thread, Seq::ZERO, usize::MAX).await;
                assert_eq!(read, Err(ReadError::NotFound), "{what}");
                hits += 1;
            }
        }
    }
    assert!(hits > 25, "{hits}");
}

/// The list row of a thread is damaged, and no index follows.
#[tokio::test]
async fn a_thread_with_a_damaged_list_row_accepts_appends_and_can_be_deleted() {
    let idle = IdleJournal::new().await;
    let (columns, rows) = idle.rows("summary");
    let row = &rows[0];
    let mut hits = 0;
    for (column, value) in columns.iter().zip(row).skip(2) {
        let Some(value) = flip_bit(value, 0) else {
            continue;
        };
        let sql = format!("UPDATE summary SET {column} = ?1 WHERE number = ?2");
        let what = format!("{sql}: {value:?} in {row:?}");
        assert!(
            idle.check_table_change(&what, &sql, &[&value, &row[0]]),
            "{what}"
        );
        let journal = local(idle.folder.path());
        let thread = idle.threads[0];
        let mut script = ThreadScript {
            thread,
            head: journal.head(thread).await.unwrap(),
            now: 5_000,
        };
        script.append(&journal, vec![renamed("later")]).await;
        let query = ListQuery {
            limit: 100,
            ..ListQuery::default()
        };
        let listed = journal.list(query.clone()).await.unwrap().entries;
        let entry = listed.iter().find(|it| it.thread == thread);
        assert!(
            entry.is_none_or(|it| it.name.as_deref() == Some("later")),
            "{what}"
        );
        assert_eq!(listed.len() - usize::from(entry.is_some()), 2, "{what}");
        assert_eq!(journal.delete(thread).await, Ok(()), "{what}");
        let listed = journal.list(query).await.unwrap().entries;
        assert_eq!(listed.len(), 2, "{what}");
        hits += 1;
    }
    assert!(hits > 8, "{hits}");
}
