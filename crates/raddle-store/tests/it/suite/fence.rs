//! Only a writer that knows the head can append.

use raddle_core::ports::{AppendError, Journal, ReadError};
use raddle_core::{Class, Seq, ThreadId};

use crate::records::{
    ThreadScript, completed, deleted, delta, item_started, owned, remembered, renamed, started,
};

super::for_each_journal!(
    a_new_thread_has_no_head,
    the_head_moves_with_each_append,
    a_stale_writer_gets_a_conflict_and_writes_nothing,
    a_delta_moves_the_fence,
    the_fence_stays_when_deltas_vanish,
    numbers_may_skip_but_never_fall,
    of_many_writers_one_succeeds,
    a_lost_answer_is_settled_by_the_head,
    an_empty_append_only_checks_the_head,
    a_deleted_thread_is_gone_and_fences_its_writer,
    a_late_forget_preserves_a_recreated_thread,
    deleting_a_missing_thread_succeeds,
);

async fn a_new_thread_has_no_head(journal: impl Journal) {
    let thread = ThreadId::mint();
    assert_eq!(journal.head(thread).await, Ok(Seq::ZERO));
    assert_eq!(
        journal.read(thread, Seq::ZERO, 1000).await,
        Err(ReadError::NotFound)
    );
    assert_eq!(journal.base(thread, None).await, Ok(None));
}

async fn the_head_moves_with_each_append(journal: impl Journal) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    assert_eq!(journal.head(script.thread).await, Ok(Seq(2)));
    script.append(&journal, vec![renamed("a")]).await;
    assert_eq!(journal.head(script.thread).await, Ok(Seq(3)));
}

async fn a_stale_writer_gets_a_conflict_and_writes_nothing(journal: impl Journal) {
    let mut script = ThreadScript::new();
    let before = script.start(&journal, "/w").await;
    let mut stale = script.clone();
    let after = stale.head;
    let newer = script.append(&journal, vec![renamed("new")]).await;
    let records = stale.records(vec![renamed("stale"), renamed("staler")]);
    let result = journal
        .append(stale.thread, after, &records, Class::Power)
        .await;
    assert_eq!(result, Err(AppendError::Conflict));
    let ahead = journal
        .append(stale.thread, Seq(99), &records, Class::Power)
        .await;
    assert_eq!(ahead, Err(AppendError::Conflict));
    let all = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
    assert_eq!(all, Ok([before, newer].concat()));
}

async fn a_delta_moves_the_fence(journal: impl Journal) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.append(&journal, vec![item_started("t", "i")]).await;
    let mut stale = script.clone();
    let after = stale.head;
    script.append(&journal, vec![delta("i", 0, "a")]).await;
    for body in [delta("i", 0, "b"), renamed("b")] {
        let mut other = stale.clone();
        let records = other.records(vec![body]);
        let result = journal
            .append(stale.thread, after, &records, Class::Process)
            .await;
        assert_eq!(result, Err(AppendError::Conflict));
    }
    assert_eq!(journal.head(stale.thread).await, Ok(script.head));
    stale.head = script.head;
    stale.append(&journal, vec![delta("i", 1, "b")]).await;
}

async fn the_fence_stays_when_deltas_vanish(journal: impl Journal) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.append(&journal, vec![item_started("t", "i")]).await;
    let before = script.clone();
    script.append(&journal, vec![delta("i", 0, "a")]).await;
    let zombie = script.clone();
    script
        .append(&journal, vec![completed("t", "i", "a")])
        .await;
    for mut former in [before, zombie] {
        let after = former.head;
        let records = former.records(vec![delta("i", 0, "b")]);
        let result = journal
            .append(former.thread, after, &records, Class::Process)
            .await;
        assert_eq!(result, Err(AppendError::Conflict));
    }
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
}

async fn numbers_may_skip_but_never_fall(journal: impl Journal) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    let after = script.head;
    let mut falling = script.records(vec![renamed("a"), renamed("b")]);
    falling.reverse();
    let thread = script.thread;
    let result = journal.append(thread, after, &falling, Class::Power).await;
    assert_eq!(result, Err(AppendError::Conflict));
    let mut again = falling[..1].to_vec();
    again[0].seq = after;
    let result = journal.append(thread, after, &again, Class::Power).await;
    assert_eq!(result, Err(AppendError::Conflict));
    again[0].seq = Seq(20_001);
    let skipped = journal.append(thread, after, &again, Class::Power).await;
    assert_eq!(skipped, Ok(Seq(20_001)));
    let rest = journal.read(thread, after, usize::MAX).await;
    assert_eq!(rest, Ok(again));
}

async fn of_many_writers_one_succeeds(journal: impl Journal) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    let after = script.head;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let name = format!("writer {writer}");
            script.clone().records(vec![renamed(&name)])
        })
        .collect();
    let appends = writers
        .iter()
        .map(|records| journal.append(script.thread, after, records, Class::Power));
    let outcomes = join(appends.collect()).await;
    let winners: Vec<usize> = (0..8).filter(|at| outcomes[*at].is_ok()).collect();
    assert_eq!(winners.len(), 1, "{outcomes:?}");
    for outcome in outcomes.iter().filter(|outcome| outcome.is_err()) {
        assert_eq!(*outcome, Err(AppendError::Conflict));
    }
    let rest = journal.read(script.thread, after, usize::MAX).await;
    assert_eq!(rest.as_ref(), Ok(&writers[winners[0]]));
}

/// Polls all futures until all are ready.
pub async fn join<T>(waiting: Vec<raddle_core::ports::BoxFuture<'_, T>>) -> Vec<T> {
    let mut waiting: Vec<_> = waiting.into_iter().map(|one| (one, None)).collect();
    std::future::poll_fn(|context| {
        for (one, ready) in waiting.iter_mut().filter(|(_, ready)| ready.is_none()) {
            if let std::task::Poll::Ready(outcome) = one.as_mut().poll(context) {
                *ready = Some(outcome);
            }
        }
        match waiting.iter().all(|(_, ready)| ready.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    waiting.into_iter().filter_map(|(_, ready)| ready).collect()
}

async fn a_lost_answer_is_settled_by_the_head(journal: impl Journal) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    let after = script.head;
    let records = script.records(vec![renamed("a")]);
    // The writer sends the records and does not receive the result.
    let append = journal.append(script.thread, after, &records, Class::Power);
    abandon(append).await;
    let settled = journal.head(script.thread).await.unwrap();
    assert!(settled == script.head || settled == after);
    if settled == after {
        // The append may still succeed later, or be sent again; not both.
        let again = journal.append(script.thread, after, &records, Class::Power);
        assert!(matches!(again.await, Ok(_) | Err(AppendError::Conflict)));
    }
    let rest = journal.read(script.thread, after, usize::MAX).await;
    assert_eq!(rest, Ok(records));
}

/// Polls the future once and drops it.
async fn abandon<T>(mut waiting: raddle_core::ports::BoxFuture<'_, T>) {
    std::future::poll_fn(|context| {
        let _ = waiting.as_mut().poll(context);
        std::task::Poll::Ready(())
    })
    .await;
}

async fn an_empty_append_only_checks_the_head(journal: impl Journal) {
    let mut script = ThreadScript::new();
    let thread = script.thread;
    let empty = journal.append(thread, Seq::ZERO, &[], Class::Power).await;
    assert_eq!(empty, Ok(Seq::ZERO));
    script.start(&journal, "/w").await;
    let stale = journal.append(thread, Seq(1), &[], Class::Power).await;
    assert_eq!(stale, Err(AppendError::Conflict));
    let current = journal.append(thread, Seq(2), &[], Class::Power).await;
    assert_eq!(current, Ok(Seq(2)));
}

async fn a_deleted_thread_is_gone_and_fences_its_writer(journal: impl Journal) {
    let mut other = ThreadScript::new();
    let other_records = other.start(&journal, "/other").await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.turn(&journal, "t", "hello").await;
    assert_eq!(journal.delete(script.thread).await, Ok(()));
    assert_eq!(journal.head(script.thread).await, Ok(Seq::ZERO));
    let read = journal.read(script.thread, Seq::ZERO, 1000).await;
    assert_eq!(read, Err(ReadError::NotFound));
    let after = script.head;
    let records = script.records(vec![renamed("zombie")]);
    let result = journal
        .append(script.thread, after, &records, Class::Power)
        .await;
    assert_eq!(result, Err(AppendError::Conflict));
    let read = journal.read(other.thread, Seq::ZERO, 10_000).await;
    assert_eq!(read, Ok(other_records));
    // The id can be used again, as an import does.
    script.head = Seq::ZERO;
    let bodies = vec![started(script.thread, "/again"), owned()];
    let again = script.append(&journal, bodies).await;
    let read = journal.read(script.thread, Seq::ZERO, 10_000).await;
    assert_eq!(read, Ok(again));
}

/// Two processes found a thread deleted, and one of them was slow.
async fn a_late_forget_preserves_a_recreated_thread(journal: impl Journal) {
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    script.turn(&journal, "t", "hello").await;
    // A deletion with an idempotency key is followed by a `Remembered` event.
    let deletions = [vec![deleted()], vec![deleted(), remembered()]];
    for deletion in deletions {
        script.append(&journal, deletion).await;
        let head = script.head;
        // The head does not match, so nothing is deleted.
        assert_eq!(journal.forget(script.thread, Seq(1)).await, Ok(()));
        assert_eq!(journal.head(script.thread).await, Ok(head));
        assert_eq!(journal.forget(script.thread, head).await, Ok(()));
        assert_eq!(journal.head(script.thread).await, Ok(Seq::ZERO));
        script.head = Seq::ZERO;
        let mut recreated = vec![started(script.thread, "/again"), owned()];
        // As long as the previous thread, also if its newest event is a `Remembered` one.
        recreated.resize_with(head.0 as usize, remembered);
        let recreated = script.append(&journal, recreated).await;
        assert_eq!(script.head, head);
        assert_eq!(journal.forget(script.thread, head).await, Ok(()));
        let read = journal.read(script.thread, Seq::ZERO, usize::MAX).await;
        assert_eq!(read, Ok(recreated));
    }
    let head = script.head;
    assert_eq!(journal.forget(ThreadId::mint(), head).await, Ok(()));
}

async fn deleting_a_missing_thread_succeeds(journal: impl Journal) {
    assert_eq!(journal.delete(ThreadId::mint()).await, Ok(()));
}
