//! Text is written on the spot exactly when that takes no waiting.

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

/// A journal with a thread, and the number of its newest record. Its writer has nothing to do.
async fn begun() -> (TempDir, LocalJournal, ThreadId, u64) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        folder: folder.path().to_owned(),
    };
    let journal = LocalJournal::open(&options).unwrap();
    let thread = ThreadId::mint();
    let mut head = 0;
    // What the thread finds to do at first moves the log, which is over with the next commit.
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
    let desk = journal.writer.slot.state();
    desk.as_ref().unwrap().conn.may_wait()
}

fn now(
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
async fn a_little_text_is_written_on_the_spot() {
    let (_folder, journal, thread, head) = begun().await;
    let stored = now(&journal, thread, head, text(head + 1, 100), Class::Process);
    assert_eq!(stored, Some(Ok(Seq(head + 1))));
    assert_eq!(journal.head(thread).await, Ok(Seq(head + 1)));
    let stale = now(&journal, thread, head, text(head + 2, 100), Class::Process);
    assert_eq!(stale, Some(Err(AppendError::Conflict)));
}

#[tokio::test]
async fn what_may_take_waiting_is_left_to_the_thread() {
    let (folder, journal, thread, head) = begun().await;
    let place = &journal.writer.slot;
    let pause = |until| place.state().as_mut().unwrap().pause = until;
    for (record, class) in [
        (text(head + 1, 9 << 10), Class::Process),
        (text(head + 1, 100), Class::Power),
        (renamed(head + 1), Class::Process),
    ] {
        let what = format!("{:?} {class:?}", record.body);
        assert_eq!(now(&journal, thread, head, record, class), None, "{what}");
    }
    let mut at = head;
    let mut little = |seen: Option<&str>| {
        let stored = now(&journal, thread, at, text(at + 1, 100), Class::Process);
        match seen {
            Some(what) => assert_eq!(stored, None, "{what}"),
            None => {
                at += 1;
                assert_eq!(stored, Some(Ok(Seq(at))));
                // This machine may be slow.
                pause(None);
            }
        }
    };
    place.is_busy.store(true, Ordering::Release);
    little(Some("the thread has something to do"));
    place.is_busy.store(false, Ordering::Release);
    little(None);

    let desk = place.state();
    little(Some("someone else writes on the spot"));
    drop(desk);
    little(None);

    let other = schema::open_to_write(folder.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    little(Some("another process writes"));
    other.execute_batch("ROLLBACK").unwrap();
    little(None);

    pause(Some(Instant::now() + Duration::from_secs(3600)));
    little(Some("the disk was slow"));
}

#[tokio::test]
async fn the_thread_looks_at_the_log_however_little_comes_at_a_time() {
    let (_folder, journal, thread, head) = begun().await;
    let mut in_a_row = 0;
    for seq in head + 1..head + 400 {
        match now(&journal, thread, seq - 1, text(seq, 100), Class::Process) {
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
