//! Forks in the local journal: rows are shared, and unused rows are deleted.

use std::path::Path;

use raddle_core::ports::{Journal, PageQuery, Pages, ReadError};
use raddle_core::{Seq, ThreadId};
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::layout::contains_marker;
use crate::makers::local;
use crate::records::{ThreadScript, completed, delta, forked, item_started, renamed};

fn open(folder: &Path) -> Connection {
    Connection::open(folder.join("journal.sqlite")).unwrap()
}

fn count(folder: &Path, what: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {what}");
    open(folder).query_row(&sql, [], |row| row.get(0)).unwrap()
}

const TABLES: [&str; 11] = [
    "thread", "part", "event", "delta", "leftover", "base", "blob_use", "turn", "turn_end", "item",
    "cut",
];

#[tokio::test]
async fn a_fork_copies_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    for turn in 0..50 {
        script.turn(&journal, &format!("t{turn}"), "go").await;
    }
    let long = "long ".repeat(20_000);
    let bodies = vec![completed("t", "i", &long), item_started("t", "j")];
    script.append(&journal, bodies).await;
    script.append(&journal, vec![delta("j", 0, "open")]).await;
    let counts = || TABLES.map(|table| count(folder.path(), table));
    let before = counts();
    let fork = script.fork(&journal, script.head).await;
    let mut expected = before;
    // A thread, a segment and the text of an open item.
    for one_more in [0, 1, 3] {
        expected[one_more] += 1;
    }
    assert_eq!(counts(), expected);
    journal.delete(fork.thread).await.unwrap();
    assert_eq!(counts(), before);
    journal.delete(script.thread).await.unwrap();
    assert_eq!(counts(), [0; 11]);
}

#[tokio::test]
async fn no_rows_remain_in_any_order_of_deletion() {
    // Three generations of forks, deleted in different orders.
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
        let folder = tempfile::tempdir().unwrap();
        let journal = local(folder.path());
        let mut root = ThreadScript::new();
        root.start(&journal, "/w").await;
        root.turn(&journal, "t1", "go").await;
        let mut threads = vec![root];
        for parent in [0, 1, 1] {
            let at = threads[parent].head;
            let mut fork = threads[parent].fork(&journal, at).await;
            fork.turn(&journal, "t", "go").await;
            let long = "long ".repeat(20_000 + at.0 as usize);
            fork.append(&journal, vec![completed("t", "i", &long)])
                .await;
            threads[parent].turn(&journal, "later", "go").await;
            threads.push(fork);
        }
        for (index, which) in order.iter().enumerate() {
            journal.delete(threads[*which].thread).await.unwrap();
            for which in &order[index + 1..] {
                let remaining = threads[*which].thread;
                let records = journal
                    .read(remaining, Seq::ZERO, usize::MAX)
                    .await
                    .unwrap();
                assert_eq!(records.last().unwrap().seq, threads[*which].head);
            }
        }
        let counts = TABLES.map(|table| count(folder.path(), table));
        assert_eq!(counts, [0; 11], "{order:?}");
        assert_eq!(files(folder.path()), 0);
    }
}

fn files(folder: &Path) -> usize {
    let directories = std::fs::read_dir(folder.join("blobs")).unwrap();
    let files = directories.map(|directory| {
        std::fs::read_dir(directory.unwrap().path())
            .unwrap()
            .count()
    });
    files.sum()
}

#[tokio::test]
async fn unshared_rows_are_deleted_with_the_parent() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let (shared, unshared) = ("0f4c77aa-shared-marker", "99ab01de-parent-marker");
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.turn(&journal, "t1", shared).await;
    let at = script.head;
    script.turn(&journal, "t2", unshared).await;
    script.append(&journal, vec![item_started("t2", "i")]).await;
    script.append(&journal, vec![delta("i", 0, unshared)]).await;
    let mut fork = script.fork(&journal, at).await;
    let started = forked(fork.thread, script.thread, at, 1);
    fork.append(&journal, vec![started]).await;
    journal.delete(script.thread).await.unwrap();
    drop(journal);
    assert!(contains_marker(folder.path(), shared.as_bytes()));
    assert!(!contains_marker(folder.path(), unshared.as_bytes()));
    let journal = local(folder.path());
    journal.delete(fork.thread).await.unwrap();
    drop(journal);
    assert!(!contains_marker(folder.path(), shared.as_bytes()));
}

/// Marks a thread's row as being deleted.
fn mark(connection: &Connection, thread: ThreadId) {
    let id = thread.as_uuid().as_bytes();
    let number: i64 = connection
        .query_row("SELECT number FROM thread WHERE id = ?1", [id], |row| {
            row.get(0)
        })
        .unwrap();
    // The row is empty: no head, no last records, no list row.
    let sum = Sha256::new()
        .chain_update(id)
        .chain_update(number.to_le_bytes())
        .chain_update(0_u64.to_le_bytes())
        .chain_update([1, 0])
        .chain_update(&Sha256::digest(id)[..16])
        .chain_update([0; 4 * 8 + 1 + 8])
        .finalize();
    let sql = "UPDATE thread SET going = 444250812007, head = 0, origin = NULL, turn = 0,
                   turn_end = 0, item = 0, cut = 0, listed = NULL, sum = ?2
               WHERE number = ?1";
    let marked = connection.execute(sql, params![number, &sum[..8]]);
    assert_eq!(marked, Ok(1));
}

#[tokio::test]
async fn an_interrupted_deletion_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let marker = "7c1e55d0-cut-off-marker";
    let mut script = ThreadScript::new();
    let mut fork;
    {
        let journal = local(folder.path());
        script.start(&journal, "/w").await;
        script.turn(&journal, "t1", "shared").await;
        fork = script.fork(&journal, script.head).await;
        for turn in 0..40 {
            script.turn(&journal, &format!("p{turn}"), marker).await;
            fork.turn(&journal, &format!("f{turn}"), marker).await;
        }
    }
    // Both were being deleted, and one had lost some of its rows, when the process was killed.
    let connection = open(folder.path());
    let truncate = "PRAGMA secure_delete = 1; DELETE FROM summary;
         DELETE FROM event WHERE at > (SELECT number << 36 FROM thread WHERE origin IS NOT NULL) + 90";
    connection.execute_batch(truncate).unwrap();
    for thread in [script.thread, fork.thread] {
        mark(&connection, thread);
    }
    drop(connection);
    assert!(contains_marker(folder.path(), marker.as_bytes()));
    let journal = local(folder.path());
    for thread in [script.thread, fork.thread] {
        let read = journal.read(thread, Seq::ZERO, 1).await;
        assert_eq!(read, Err(ReadError::NotFound));
    }
    let mut other = ThreadScript::new();
    other.start(&journal, "/w").await;
    // The deletion continues by itself, between the appends of others.
    for _ in 0..2000 {
        if count(folder.path(), "thread") == 1 && !contains_marker(folder.path(), marker.as_bytes())
        {
            break;
        }
        other.append(&journal, vec![renamed("other")]).await;
    }
    // The WAL is cleared too, although the journal is still open.
    assert!(!contains_marker(folder.path(), marker.as_bytes()));
    assert!(!contains_marker(
        folder.path(),
        script.thread.as_uuid().as_bytes()
    ));
    assert_eq!(count(folder.path(), "part"), 0);
}

/// Creates a parent with two turns and a fork between them, and changes the file behind the
/// journal's back. Returns which of the two are intact.
async fn damage_and_read(change: impl FnOnce(&Connection, i64, i64)) -> [bool; 2] {
    let folder = tempfile::tempdir().unwrap();
    let (mut script, mut fork);
    {
        let journal = local(folder.path());
        script = ThreadScript::new();
        script.start(&journal, "/w").await;
        script.turn(&journal, "t1", "one").await;
        fork = script.fork(&journal, script.head).await;
        script.turn(&journal, "t2", "two").await;
        fork.turn(&journal, "t2", "deux").await;
    }
    {
        let connection = open(folder.path());
        let number = |script: &ThreadScript| -> i64 {
            let sql = "SELECT number FROM thread WHERE id = ?1";
            let id = script.thread.as_uuid().as_bytes();
            connection.query_row(sql, [id], |row| row.get(0)).unwrap()
        };
        change(&connection, number(&script) << 36, number(&fork) << 36);
    }
    let journal = local(folder.path());
    let mut intact = [true, true];
    for (intact, script) in intact.iter_mut().zip([&script, &fork]) {
        match journal.read(script.thread, Seq::ZERO, usize::MAX).await {
            Ok(records) => assert_eq!(records.last().unwrap().seq, script.head),
            Err(ReadError::Corrupt { .. }) => *intact = false,
            Err(error) => panic!("{error:?}"),
        }
    }
    intact
}

#[tokio::test]
async fn damage_is_reported_by_every_thread_that_shares_it() {
    assert_eq!(damage_and_read(|_, _, _| {}).await, [true, true]);
    let change = "UPDATE event SET time = time + 1 WHERE at = ?1";
    let shared = damage_and_read(|connection, parent, _| {
        assert_eq!(connection.execute(change, [parent + 4]), Ok(1));
    });
    assert_eq!(shared.await, [false, false]);
    let parents = damage_and_read(|connection, parent, _| {
        assert_eq!(connection.execute(change, [parent + 10]), Ok(1));
    });
    assert_eq!(parents.await, [false, true]);
    let forks = damage_and_read(|connection, _, fork| {
        assert_eq!(connection.execute(change, [fork + 10]), Ok(1));
    });
    assert_eq!(forks.await, [true, false]);
}

#[tokio::test]
async fn a_changed_segment_is_detected() {
    for sql in [
        "UPDATE part SET upto = upto - 2",
        "UPDATE part SET upto = upto + 2",
        "UPDATE part SET taken = number",
        "DELETE FROM part",
        "UPDATE thread SET origin = zeroblob(16) WHERE origin IS NOT NULL",
    ] {
        let result = damage_and_read(|connection, _, _| {
            assert_eq!(connection.execute(sql, []), Ok(1));
        });
        assert_eq!(result.await, [true, false], "{sql}");
    }
}

#[tokio::test]
async fn a_page_of_turns_is_verified_against_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = ThreadScript::new();
    {
        let journal = local(folder.path());
        script.start(&journal, "/w").await;
        script.turn(&journal, "t1", "one").await;
    }
    let sql = "UPDATE event SET time = time + 1 WHERE at & 0xfffffffff = 3";
    assert_eq!(open(folder.path()).execute(sql, []), Ok(1));
    let journal = local(folder.path());
    let query = PageQuery {
        limit: 1,
        ..PageQuery::default()
    };
    let page = journal.turns(script.thread, query).await;
    assert!(
        matches!(page, Err(ReadError::Corrupt { at: Seq(3), .. })),
        "{page:?}"
    );
}

/// Returns the size of the largest transaction in the WAL.
fn largest_transaction(folder: &Path) -> usize {
    let log = std::fs::read(folder.join("journal.sqlite-wal")).unwrap();
    let frames = log[32..].chunks_exact(24 + 1024);
    let ends: Vec<bool> = frames.map(|frame| frame[4..8] != [0; 4]).collect();
    let transactions = ends.split(|ends| *ends).map(<[bool]>::len);
    (transactions.max().unwrap() + 1) * 1024
}

#[tokio::test]
async fn no_transaction_of_a_fork_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.append(&journal, vec![item_started("t", "i")]).await;
    let text = "words ".repeat(50);
    for round in 0..50 {
        let bodies = (0..100).map(|at| delta("i", (round * 100 + at) * 300, &text));
        script.append(&journal, bodies.collect()).await;
    }
    // Empties the WAL.
    drop(journal);
    let journal = local(folder.path());
    let fork = script.fork(&journal, script.head).await;
    assert_eq!(fork.head, script.head);
    let largest = largest_transaction(folder.path());
    assert!(largest < 1 << 20, "{largest} bytes");
    let all = async |thread| journal.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
    assert_eq!(all(fork.thread).await, all(script.thread).await);
}
