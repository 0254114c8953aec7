//! Only a writer that knows the head can append.

use std::future::poll_fn;
use std::task::Poll;

use raddle_core::ports::{AppendError, BoxFuture, Journal, ReadError};
use raddle_core::{Class, Record, RecordBody, Seq, ThreadId};

use crate::records::{
    ThreadScript, completed, deleted, delta, item_started, owned, owned_by, remembered, renamed,
    started,
};
use crate::{Handles, StoreMaker};

suite!(fencing, on one handle and on two:
    a_new_thread_has_no_head,
    the_head_moves_with_each_append,
    a_stale_writer_gets_a_conflict_and_writes_nothing,
    a_delta_moves_the_head,
    numbers_of_deltas_move_the_head_within_an_epoch,
    the_head_stays_when_deltas_vanish,
    numbers_may_skip_but_never_fall,
    of_many_writers_one_succeeds,
    a_lost_answer_is_settled_by_the_head,
    an_empty_append_only_checks_the_head,
    taking_a_thread_returns_its_head,
    a_writer_whose_thread_was_taken_gets_a_conflict,
    a_late_append_of_the_former_owner_comes_first_or_fails,
    a_deleted_thread_is_gone_and_its_writer_gets_a_conflict,
    a_late_forget_preserves_a_recreated_thread,
    deleting_a_missing_thread_succeeds,
);

async fn a_new_thread_has_no_head(handles: Handles<impl StoreMaker>) {
    let thread = ThreadId::mint();
    for journal in [handles.first(), handles.second()] {
        assert_eq!(journal.head(thread).await, Ok(Seq::ZERO));
        assert_eq!(
            journal.read(thread, Seq::ZERO, 1000).await,
            Err(ReadError::NotFound)
        );
        assert_eq!(journal.base(thread, None).await, Ok(None));
    }
}

async fn the_head_moves_with_each_append(handles: Handles<impl StoreMaker>) {
    let (writer, reader) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    assert_eq!(reader.head(script.thread).await, Ok(Seq(2)));
    script.append(writer, vec![renamed("a")]).await;
    assert_eq!(reader.head(script.thread).await, Ok(Seq(3)));
    assert_eq!(writer.head(script.thread).await, Ok(Seq(3)));
}

async fn a_stale_writer_gets_a_conflict_and_writes_nothing(handles: Handles<impl StoreMaker>) {
    let (writer, rival) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    let before = script.start(writer, "/w").await;
    let mut stale = script.clone();
    let after = stale.head;
    let newer = script.append(writer, vec![renamed("new")]).await;
    let records = stale.records(vec![renamed("stale"), renamed("staler")]);
    let result = append(rival, &script, after, &records).await;
    assert_eq!(result, Err(AppendError::Conflict));
    let ahead = append(rival, &script, Seq(99), &records).await;
    assert_eq!(ahead, Err(AppendError::Conflict));
    for journal in [writer, rival] {
        let all = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
        assert_eq!(all, Ok([before.clone(), newer.clone()].concat()));
    }
}

async fn a_delta_moves_the_head(handles: Handles<impl StoreMaker>) {
    let (writer, rival) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    script.append(writer, vec![item_started("t", "i")]).await;
    let mut stale = script.clone();
    let after = stale.head;
    script.append(writer, vec![delta("i", 0, "a")]).await;
    for body in [delta("i", 0, "b"), renamed("b")] {
        let mut other = stale.clone();
        let records = other.records(vec![body]);
        let result = rival
            .append(stale.thread, after, &records, Class::Process)
            .await;
        assert_eq!(result, Err(AppendError::Conflict));
    }
    assert_eq!(rival.head(stale.thread).await, Ok(script.head));
    // A node takes a thread before it writes to it.
    let taken = rival.take(stale.thread, Some("one")).await;
    assert_eq!(taken, Ok(script.head));
    stale.head = script.head;
    stale.append(rival, vec![delta("i", 1, "b")]).await;
}

/// Each append of deltas names the number of the delta before it, and the next owner's epoch begins
/// after the last of them.
async fn numbers_of_deltas_move_the_head_within_an_epoch(handles: Handles<impl StoreMaker>) {
    let (writer, rival) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    script.append(writer, vec![item_started("t", "i")]).await;
    for at in 0..5 {
        let after = script.head;
        script.append(writer, vec![delta("i", at, "a")]).await;
        let records = script.clone().records(vec![delta("i", at, "b")]);
        let class = Class::Process;
        let behind = writer.append(script.thread, after, &records, class).await;
        assert_eq!(behind, Err(AppendError::Conflict));
    }
    let taken = rival.take(script.thread, Some("one")).await;
    assert_eq!(taken, Ok(script.head));
    let mut next = script.clone();
    next.append(rival, vec![owned_by("two", 2)]).await;
    let late = script.clone().records(vec![delta("i", 5, "late")]);
    let late = append(writer, &script, script.head, &late).await;
    assert_eq!(late, Err(AppendError::Conflict));
    assert_eq!(writer.head(script.thread).await, Ok(next.head));
}

async fn the_head_stays_when_deltas_vanish(handles: Handles<impl StoreMaker>) {
    let (writer, rival) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    script.append(writer, vec![item_started("t", "i")]).await;
    let before = script.clone();
    script.append(writer, vec![delta("i", 0, "a")]).await;
    let zombie = script.clone();
    script.append(writer, vec![completed("t", "i", "a")]).await;
    for mut former in [before, zombie] {
        let after = former.head;
        let records = former.records(vec![delta("i", 0, "b")]);
        let result = append(rival, &script, after, &records).await;
        assert_eq!(result, Err(AppendError::Conflict));
    }
    assert_eq!(rival.head(script.thread).await, Ok(script.head));
}

async fn numbers_may_skip_but_never_fall(handles: Handles<impl StoreMaker>) {
    let (writer, rival) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    let after = script.head;
    let mut falling = script.records(vec![renamed("a"), renamed("b")]);
    falling.reverse();
    let result = append(rival, &script, after, &falling).await;
    assert_eq!(result, Err(AppendError::Conflict));
    let mut again = falling[..1].to_vec();
    again[0].seq = after;
    let result = append(rival, &script, after, &again).await;
    assert_eq!(result, Err(AppendError::Conflict));
    again[0].seq = Seq(20_001);
    assert_eq!(rival.take(script.thread, Some("one")).await, Ok(after));
    let skipped = append(rival, &script, after, &again).await;
    assert_eq!(skipped, Ok(Seq(20_001)));
    let rest = writer.read(script.thread, after, usize::MAX).await;
    assert_eq!(rest, Ok(again));
}

async fn of_many_writers_one_succeeds(handles: Handles<impl StoreMaker>) {
    let journals = [handles.first(), handles.second()];
    let mut script = ThreadScript::new();
    script.start(journals[0], "/w").await;
    let after = script.head;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let name = format!("writer {writer}");
            script.clone().records(vec![renamed(&name)])
        })
        .collect();
    let appends = writers.iter().enumerate().map(|(writer, records)| {
        journals[writer % 2].append(script.thread, after, records, Class::Power)
    });
    let outcomes = join(appends.collect()).await;
    let winners: Vec<usize> = (0..8).filter(|at| outcomes[*at].is_ok()).collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    for outcome in outcomes.iter().filter(|outcome| outcome.is_err()) {
        assert_eq!(*outcome, Err(AppendError::Conflict));
    }
    for journal in journals {
        let rest = journal.read(script.thread, after, usize::MAX).await;
        assert_eq!(rest.as_ref(), Ok(&writers[winners[0]]));
    }
}

/// Polls all futures until all are ready.
async fn join<T>(waiting: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut waiting: Vec<_> = waiting.into_iter().map(|one| (one, None)).collect();
    poll_fn(|context| {
        for (one, ready) in waiting.iter_mut().filter(|(_, ready)| ready.is_none()) {
            if let Poll::Ready(outcome) = one.as_mut().poll(context) {
                *ready = Some(outcome);
            }
        }
        match waiting.iter().all(|(_, ready)| ready.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    waiting.into_iter().filter_map(|(_, ready)| ready).collect()
}

async fn a_lost_answer_is_settled_by_the_head(handles: Handles<impl StoreMaker>) {
    let (writer, other) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    let after = script.head;
    let records = script.records(vec![renamed("a")]);
    // The writer sends the records and does not receive the result.
    let append = writer.append(script.thread, after, &records, Class::Power);
    abandon(append).await;
    let settled = other.take(script.thread, Some("one")).await.unwrap();
    assert!(settled == script.head || settled == after);
    if settled == after {
        // The append may still succeed later, or be sent again; not both.
        let again = other.append(script.thread, after, &records, Class::Power);
        assert!(matches!(again.await, Ok(_) | Err(AppendError::Conflict)));
    }
    let rest = other.read(script.thread, after, usize::MAX).await;
    assert_eq!(rest, Ok(records));
}

/// Polls the future once and drops it.
async fn abandon<T>(mut waiting: BoxFuture<'_, T>) {
    poll_fn(|context| {
        let _ = waiting.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

async fn an_empty_append_only_checks_the_head(handles: Handles<impl StoreMaker>) {
    let (writer, rival) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    let thread = script.thread;
    let empty = rival.append(thread, Seq::ZERO, &[], Class::Power).await;
    assert_eq!(empty, Ok(Seq::ZERO));
    script.start(writer, "/w").await;
    let stale = rival.append(thread, Seq(1), &[], Class::Power).await;
    assert_eq!(stale, Err(AppendError::Conflict));
    let current = rival.append(thread, Seq(2), &[], Class::Power).await;
    assert_eq!(current, Ok(Seq(2)));
}

async fn taking_a_thread_returns_its_head(handles: Handles<impl StoreMaker>) {
    let (writer, next) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    let thread = script.thread;
    for former in [None, Some("one")] {
        assert_eq!(next.take(thread, former).await, Ok(Seq::ZERO));
    }
    script.start(writer, "/w").await;
    script.append(writer, vec![item_started("t", "i")]).await;
    for body in [delta("i", 0, "a"), completed("t", "i", "a"), renamed("a")] {
        let taken = writer.take(thread, Some("one")).await;
        assert_eq!(taken, Ok(script.head));
        script.append(writer, vec![body]).await;
        // A node may take a thread again, or one that its owner released.
        for former in [Some("one"), Some("one"), None] {
            assert_eq!(next.take(thread, former).await, Ok(script.head));
        }
    }
    let all = next.read(thread, Seq::ZERO, usize::MAX).await.unwrap();
    assert_eq!(all.last().map(|it| it.seq), Some(script.head));
    script.append(next, vec![owned_by("two", 2)]).await;
    assert_eq!(writer.take(thread, Some("two")).await, Ok(script.head));
}

async fn a_writer_whose_thread_was_taken_gets_a_conflict(handles: Handles<impl StoreMaker>) {
    let (former, next) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(former, "/w").await;
    script.append(former, vec![item_started("t", "i")]).await;
    script.append(former, vec![delta("i", 0, "a")]).await;
    let mut stale = script.clone();
    assert_eq!(next.take(script.thread, Some("one")).await, Ok(script.head));
    script.append(next, vec![owned_by("two", 2)]).await;
    let after = stale.head;
    for body in [delta("i", 1, "late"), renamed("late")] {
        let records = stale.clone().records(vec![body]);
        let late = append(former, &script, after, &records).await;
        assert_eq!(late, Err(AppendError::Conflict));
    }
    // The former owner may take it back.
    let rest = former.read(script.thread, after, usize::MAX).await;
    assert_eq!(rest.map(|it| it.len()), Ok(1));
    let taken = former.take(script.thread, Some("two")).await;
    assert_eq!(taken, Ok(script.head));
    stale.head = script.head;
    stale.append(former, vec![renamed("known")]).await;
}

/// The former owner does not know yet that its thread was taken, and appends.
async fn a_late_append_of_the_former_owner_comes_first_or_fails(handles: Handles<impl StoreMaker>) {
    let (former, next) = (handles.first(), handles.second());
    for is_delta in [true, false] {
        let mut script = ThreadScript::new();
        script.start(former, "/w").await;
        script.append(former, vec![item_started("t", "i")]).await;
        let after = script.head;
        assert_eq!(next.take(script.thread, Some("one")).await, Ok(after));
        let body = match is_delta {
            true => delta("i", 0, "late"),
            false => renamed("late"),
        };
        let late = script.clone().records(vec![body]);
        let late = append(former, &script, after, &late).await;
        let first = script.clone().records(vec![owned_by("two", 2)]);
        let first = append(next, &script, after, &first).await;
        let head = next.take(script.thread, Some("one")).await;
        assert_eq!(head, Ok(after.next()), "{late:?} {first:?}");
        match late {
            Ok(_) => assert_eq!(first, Err(AppendError::Conflict)),
            Err(error) => assert_eq!((error, first), (AppendError::Conflict, Ok(after.next()))),
        }
    }
}

async fn a_deleted_thread_is_gone_and_its_writer_gets_a_conflict(
    handles: Handles<impl StoreMaker>,
) {
    let (writer, rival) = (handles.first(), handles.second());
    let mut other = ThreadScript::new();
    let other_records = other.start(writer, "/other").await;
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    script.turn(writer, "t", "hello").await;
    assert_eq!(rival.delete(script.thread).await, Ok(()));
    for journal in [writer, rival] {
        assert_eq!(journal.head(script.thread).await, Ok(Seq::ZERO));
        let read = journal.read(script.thread, Seq::ZERO, 1000).await;
        assert_eq!(read, Err(ReadError::NotFound));
    }
    let after = script.head;
    let records = script.records(vec![renamed("zombie")]);
    let result = append(writer, &script, after, &records).await;
    assert_eq!(result, Err(AppendError::Conflict));
    let read = rival.read(other.thread, Seq::ZERO, 10_000).await;
    assert_eq!(read, Ok(other_records));
    // The id can be used again, as an import does.
    script.head = Seq::ZERO;
    let bodies = vec![started(script.thread, "/again"), owned()];
    let again = script.append(rival, bodies).await;
    let read = writer.read(script.thread, Seq::ZERO, 10_000).await;
    assert_eq!(read, Ok(again));
}

/// Two processes found a thread deleted, and one of them was slow.
async fn a_late_forget_preserves_a_recreated_thread(handles: Handles<impl StoreMaker>) {
    let (writer, slow) = (handles.first(), handles.second());
    let mut script = ThreadScript::new();
    script.start(writer, "/w").await;
    script.turn(writer, "t", "hello").await;
    // A deletion with an idempotency key is followed by a `Remembered` event.
    let deletions = [vec![deleted()], vec![deleted(), remembered()]];
    for deletion in deletions {
        script.append(writer, deletion).await;
        let head = script.head;
        // The head does not match, so nothing is deleted.
        assert_eq!(slow.forget(script.thread, Seq(1)).await, Ok(()));
        assert_eq!(writer.head(script.thread).await, Ok(head));
        assert_eq!(writer.forget(script.thread, head).await, Ok(()));
        assert_eq!(slow.head(script.thread).await, Ok(Seq::ZERO));
        script.head = Seq::ZERO;
        let mut recreated = vec![started(script.thread, "/again"), owned()];
        // As long as the previous thread, also if its newest event is a `Remembered` one.
        recreated.resize_with(head.0 as usize, remembered);
        let recreated = script.append(writer, recreated).await;
        assert_eq!(script.head, head);
        assert_eq!(slow.forget(script.thread, head).await, Ok(()));
        let read = writer.read(script.thread, Seq::ZERO, usize::MAX).await;
        assert_eq!(read, Ok(recreated));
    }
    let head = script.head;
    assert_eq!(slow.forget(ThreadId::mint(), head).await, Ok(()));
}

async fn deleting_a_missing_thread_succeeds(handles: Handles<impl StoreMaker>) {
    for journal in [handles.first(), handles.second()] {
        assert_eq!(journal.delete(ThreadId::mint()).await, Ok(()));
    }
}

/// Appends records to the thread of a script, after a number.
async fn append(
    journal: &impl Journal,
    script: &ThreadScript,
    after: Seq,
    records: &[Record],
) -> Result<Seq, AppendError> {
    let is_text = |record: &Record| matches!(record.body, RecordBody::Delta(_));
    let class = match records.iter().all(is_text) {
        true => Class::Process,
        false => Class::Power,
    };
    journal.append(script.thread, after, records, class).await
}
