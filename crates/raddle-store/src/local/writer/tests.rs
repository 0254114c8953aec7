//! Text is written on the caller's thread exactly when that does not block.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use raddle_core::ports::Journal;
use raddle_core::{Class, Delta, Event, ItemPart, Record, RecordBody, Renamed, Timestamp};
use tempfile::TempDir;

use super::*;
use crate::local::schema;
use crate::{LocalJournal, Options};

fn record(seq: u64, body: RecordBody) -> Record {
    Record {
        seq: Seq(seq),
        at: Timestamp(1),
        body,
    }
}

fn text(seq: u64, length: usize) -> Record {
    let delta = Delta {
        item: "i".into(),
        part: ItemPart::Text,
        offset: 0,
        text: "x".repeat(length),
    };
    record(seq, RecordBody::Delta(delta))
}

fn renamed(seq: u64) -> Record {
    let name = Renamed {
        name: None,
        principal: None,
    };
    record(seq, Event::Renamed(name).into())
}

/// Creates a journal with a thread. Returns the number of its newest record. Its writer is idle.
async fn open_journal() -> (TempDir, LocalJournal, ThreadId, u64) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        folder: folder.path().to_owned(),
    };
    let journal = LocalJournal::open(&options).unwrap();
    let thread = ThreadId::mint();
    let mut head = 0;
    // The first jobs of the writer run a checkpoint; the next commit resets that state.
    while head == 0 || may_wait(&journal) {
        head += 1;
        let records = [renamed(head)];
        let appended = journal.append(thread, Seq(head - 1), &records, Class::Process);
        appended.await.unwrap();
        journal.writer.wait_idle();
    }
    (folder, journal, thread, head)
}

fn may_wait(journal: &LocalJournal) -> bool {
    let state = journal.writer.slot.state();
    state.as_ref().unwrap().conn.may_wait()
}

fn append_now(
    journal: &LocalJournal,
    thread: ThreadId,
    after: u64,
    record: Record,
    class: Class,
) -> Option<Result<Seq, AppendError>> {
    let (append, _) = Append::new(thread, Seq(after), &[record], class).unwrap();
    journal.writer.append_now(&append)
}

#[tokio::test]
async fn a_small_append_is_written_directly() {
    let (_folder, journal, thread, head) = open_journal().await;
    let stored = append_now(&journal, thread, head, text(head + 1, 100), Class::Process);
    assert_eq!(stored, Some(Ok(Seq(head + 1))));
    assert_eq!(journal.head(thread).await, Ok(Seq(head + 1)));
    let stale = append_now(&journal, thread, head, text(head + 2, 100), Class::Process);
    assert_eq!(stale, Some(Err(AppendError::Conflict)));
}

#[tokio::test]
async fn appends_that_may_block_go_to_the_thread() {
    let (folder, journal, thread, head) = open_journal().await;
    let slot = &journal.writer.slot;
    let pause = |until| slot.state().as_mut().unwrap().pause = until;
    for (record, class) in [
        (text(head + 1, 9 << 10), Class::Process),
        (text(head + 1, 100), Class::Power),
        (renamed(head + 1), Class::Process),
    ] {
        let what = format!("{:?} {class:?}", record.body);
        assert_eq!(
            append_now(&journal, thread, head, record, class),
            None,
            "{what}"
        );
    }
    let mut at = head;
    let mut append_small = |blocked_by: Option<&str>| {
        let stored = append_now(&journal, thread, at, text(at + 1, 100), Class::Process);
        match blocked_by {
            Some(what) => assert_eq!(stored, None, "{what}"),
            None => {
                at += 1;
                assert_eq!(stored, Some(Ok(Seq(at))));
                // A slow machine may have started a pause.
                pause(None);
            }
        }
    };
    slot.is_busy.store(true, Ordering::Release);
    append_small(Some("the thread has something to do"));
    slot.is_busy.store(false, Ordering::Release);
    append_small(None);

    let state = slot.state();
    append_small(Some("someone else writes on the spot"));
    drop(state);
    append_small(None);

    let other = schema::open_to_write(folder.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    append_small(Some("another process writes"));
    other.execute_batch("ROLLBACK").unwrap();
    append_small(None);

    pause(Some(Instant::now() + Duration::from_secs(3600)));
    append_small(Some("the disk was slow"));
}

#[tokio::test]
async fn the_thread_checks_the_log_despite_small_appends() {
    let (_folder, journal, thread, head) = open_journal().await;
    let mut in_a_row = 0;
    for seq in head + 1..head + 400 {
        match append_now(&journal, thread, seq - 1, text(seq, 100), Class::Process) {
            Some(stored) => {
                assert_eq!(stored, Ok(Seq(seq)));
                in_a_row += 1;
                assert!(in_a_row < 128, "the log is looked at every half MiB");
            }
            None => {
                in_a_row = 0;
                let records = [text(seq, 100)];
                let stored = journal.append(thread, Seq(seq - 1), &records, Class::Process);
                assert_eq!(stored.await, Ok(Seq(seq)));
                journal.writer.wait_idle();
            }
        }
    }
}
