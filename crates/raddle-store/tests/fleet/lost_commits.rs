//! Batches that are lost with the primary, and writes of one node to one thread at the same time.

use std::time::Duration;

use raddle_core::ports::{AppendError, Journal};
use raddle_core::{Base, Seq, Thread};
use raddle_store::FleetOptions;
use store_suite::records::{delta, renamed};

use crate::maker::{open, options};
use crate::node_log::{BATCHES, Tables, attempt, numbers, whole, with_item};
use crate::server;

/// Options of a journal that does not shorten its log by itself.
fn without_upkeep() -> FleetOptions {
    FleetOptions {
        upkeep: Duration::from_secs(3600),
        ..options(server::shared())
    }
}

/// A silent thread would not notice that the database lost its text.
#[tokio::test]
async fn batches_that_the_database_lost_are_sent_again_without_another() {
    let options = FleetOptions {
        upkeep: Duration::from_millis(1),
        ..options(server::shared())
    };
    let journal = open(&options).await;
    let tables = Tables::open(&options).await;
    let mut script = with_item(&journal).await;
    script.append(&journal, vec![delta("i", 0, "a")]).await;
    tables
        .run("DELETE FROM node_batches; UPDATE node_logs SET n = 0")
        .await;
    tables.wait_for(BATCHES, |count| count == 1).await;
    assert_eq!(numbers(&journal, script.thread).await, whole(&script));
}

/// A batch fails while its text is about to be copied to rows of the thread.
#[tokio::test]
async fn text_that_was_not_stored_is_not_copied() {
    let options = without_upkeep();
    let journal = open(&options).await;
    let (tables, lock) = (Tables::open(&options).await, Tables::open(&options).await);
    let mut script = with_item(&journal).await;
    script.append(&journal, vec![delta("i", 0, "a")]).await;
    let mut thread = Thread::new();
    let records = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    for record in &records.unwrap() {
        thread.apply(record);
    }
    lock.run("BEGIN; SELECT 1 FROM node_logs FOR UPDATE").await;
    let append = attempt(&journal, &script, delta("i", 1, "fails"));
    let flush = async {
        tables.wait_for_waiters(1).await;
        journal.save_base(script.thread, Base::of(&thread)).await
    };
    // The copy is polled first once the batch has failed.
    let (flushed, appended) = tokio::join!(biased; flush, append);
    lock.run("ROLLBACK").await;
    assert_eq!(flushed, Ok(()));
    let is_unavailable = matches!(appended, Err(AppendError::Unavailable(_)));
    assert!(is_unavailable, "{appended:?}");
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
    script.append(&journal, vec![delta("i", 1, "b")]).await;
    assert_eq!(numbers(&journal, script.thread).await, whole(&script));
}

/// A batch compares nothing of its threads, so the node excludes text while it writes to the row.
#[tokio::test]
async fn one_of_two_writes_of_a_node_to_a_thread_succeeds() {
    for is_taken in [false, true] {
        let options = without_upkeep();
        let journal = open(&options).await;
        let (tables, lock) = (Tables::open(&options).await, Tables::open(&options).await);
        let mut script = with_item(&journal).await;
        script.append(&journal, vec![delta("i", 0, "a")]).await;
        lock.run("BEGIN; SELECT 1 FROM threads FOR UPDATE").await;
        let event = async {
            match is_taken {
                true => {
                    let taken = journal.take(script.thread, None).await;
                    assert_eq!(taken, Ok(script.head));
                    Ok(Seq::ZERO)
                }
                false => attempt(&journal, &script, renamed("b")).await,
            }
        };
        let waiting = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                       WHERE NOT l.granted AND a.query LIKE '%UPDATE threads%'
                           AND EXISTS (SELECT 1 FROM pg_locks m WHERE m.pid = l.pid
                               AND m.relation = 'threads'::regclass)";
        let text = async {
            tables.wait_for(waiting, |count| count == 1).await;
            let end = async {
                tables.wait_for(waiting, |count| count == 2).await;
                lock.run("COMMIT").await;
            };
            let append = attempt(&journal, &script, delta("i", 1, "b"));
            tokio::join!(append, end).0
        };
        let (event, text) = tokio::join!(event, text);
        if is_taken {
            let stored = journal.head(script.thread).await.unwrap();
            assert_eq!(text.is_ok(), stored == script.head.next(), "{text:?}");
        } else {
            assert_eq!(event, Ok(script.head.next()));
            assert_eq!(text, Err(AppendError::Conflict));
        }
    }
}
