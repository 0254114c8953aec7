//! A journal with injected faults.

use raddle_core::Seq;
use raddle_core::ports::{AppendError, Blobs, ForkError, Journal, ListQuery, Pages, ReadError};
use raddle_store::{FaultMode, FaultyJournal};

use crate::records::{ThreadScript, class_of, renamed};

/// Result of an append, and whether its records exist afterwards.
#[derive(Debug, PartialEq)]
enum AppendFate {
    Stored,
    Refused(AppendError),
    /// The append was rejected, but its records exist.
    StoredAndRefused(AppendError),
}

#[tokio::test]
async fn each_fault_mode_has_its_outcome() {
    let why = || "the test injected a fault".to_owned();
    for (mode, fate, reads) in [
        (FaultMode::Healthy, AppendFate::Stored, true),
        (
            FaultMode::Unavailable,
            AppendFate::Refused(AppendError::Unavailable(why())),
            false,
        ),
        (
            FaultMode::Full,
            AppendFate::Refused(AppendError::Full(why())),
            true,
        ),
        (
            FaultMode::Reserve,
            AppendFate::Refused(AppendError::Full(why())),
            true,
        ),
        (
            FaultMode::ReadOnly,
            AppendFate::Refused(AppendError::ReadOnly(why())),
            true,
        ),
        (
            FaultMode::Lost,
            AppendFate::Refused(AppendError::Unknown(why())),
            false,
        ),
        (
            FaultMode::Dropping,
            AppendFate::Refused(AppendError::Unknown(why())),
            true,
        ),
        (
            FaultMode::Unacknowledged,
            AppendFate::StoredAndRefused(AppendError::Unknown(why())),
            true,
        ),
    ] {
        let journal = FaultyJournal::new();
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        let (thread, after) = (script.thread, script.head);
        let records = script.records(vec![renamed("a")]);
        journal.set(mode);
        let appended = journal
            .append(thread, after, &records, class_of(&records))
            .await;
        let expected = reads.then_some(()).ok_or(ReadError::Unavailable(why()));
        assert_eq!(journal.head(thread).await.map(drop), expected, "{mode:?}");
        let taken = journal.take(thread, Some("one")).await;
        assert_eq!(taken.map(drop), expected, "{mode:?}");
        let read = Journal::read(&journal, thread, Seq::ZERO, 1).await;
        assert_eq!(read.map(drop), expected, "{mode:?}");
        let listed = journal.list(ListQuery::default()).await;
        assert_eq!(listed.map(drop), expected, "{mode:?}");
        let forked = journal.fork(thread, after, raddle_core::ThreadId::mint());
        let put = journal.put(thread, vec![1], "x".to_owned()).await.map(drop);
        assert_eq!(put.err(), forked.await.err().map(refusal), "{mode:?}");
        journal.set(FaultMode::Healthy);
        let is_there = journal.head(thread).await == Ok(script.head);
        let outcome = match (appended, is_there) {
            (Ok(_), true) => AppendFate::Stored,
            (Err(error), false) => AppendFate::Refused(error),
            (Err(error), true) => AppendFate::StoredAndRefused(error),
            (Ok(_), false) => unreachable!("it said that it was stored"),
        };
        assert_eq!(outcome, fate, "{mode:?}");
    }
}

fn refusal(error: ForkError) -> AppendError {
    match error {
        ForkError::Append(error) => error,
        other => unreachable!("{other}"),
    }
}

#[tokio::test]
async fn writes_to_a_slow_journal_wait_and_reads_do_not() {
    let journal = FaultyJournal::new();
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    let (thread, head) = (script.thread, script.head);
    journal.set(FaultMode::Slow);
    let writes = script.append(&journal, vec![renamed("a")]);
    let unblocks = async {
        while journal.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(journal.head(thread).await, Ok(head));
        journal.set(FaultMode::Healthy);
    };
    tokio::join!(writes, unblocks);
    assert_eq!(journal.head(thread).await, Ok(head.next()));
}
