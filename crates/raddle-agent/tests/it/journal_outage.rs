//! A journal that is slow, unavailable, full or ambiguous.

use std::sync::Arc;
use std::time::Duration;

use raddle_agent::{AgentError, Delivery, Handle, Subscriber, Threads};
use raddle_core::ports::Journal;
use raddle_core::{
    Command, CommandOutcome, Event, FailureKind, RecordBody, Refusal, Seq, Thread, ThreadId,
    TurnEnd,
};
use raddle_protocol::{CodexErrorInfo, Notification};
use raddle_store::{FaultMode, FaultyJournal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::script::{ScriptLine, ScriptedAnswers};
use super::{begin, client, execute, interrupt, rename, started, threads, turn, until};

fn on_faulty(script: &[&[ScriptLine]]) -> (Arc<FaultyJournal>, Threads, Arc<ScriptedAnswers>) {
    let journal = Arc::new(FaultyJournal::new());
    let port: Arc<dyn Journal> = journal.clone();
    let (threads, script) = threads(&port, script);
    (journal, threads, script)
}

#[tokio::test]
async fn an_interrupt_does_not_wait_for_a_slow_disk() {
    let (journal, threads, script) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut deliveries) = client();
    let thread = begin(&threads, ThreadId::mint(), me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    journal.set(FaultMode::Slow);
    // An append is in progress and stays so.
    let renamed = tokio::spawn({
        let thread = thread.clone();
        async move { execute(&thread, rename(Some("a"))).await }
    });
    let interrupted = tokio::spawn({
        let thread = thread.clone();
        async move { execute(&thread, interrupt()).await }
    });
    // The model call is cancelled, though nothing is stored yet.
    script.dropped().await;
    assert!(!interrupted.is_finished());
    journal.set(FaultMode::Healthy);
    assert_eq!(
        interrupted.await.expect("no panic"),
        Ok(CommandOutcome::Done {})
    );
    assert_eq!(
        renamed.await.expect("no panic"),
        Ok(CommandOutcome::Done {})
    );
    until(&mut deliveries, "turn/completed").await;
}

#[tokio::test]
async fn a_turn_ends_once_when_the_journal_is_full() {
    let (journal, threads, script) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut deliveries) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    journal.set(FaultMode::Reserve);
    let result = execute(&thread, rename(Some("a"))).await;
    assert!(
        matches!(result, Err(AgentError::Refused(Refusal::NotStored(_)))),
        "{result:?}"
    );
    // The model call is cancelled, its announced text is kept, and the turn is over.
    script.dropped().await;
    assert_eq!(
        until(&mut deliveries, "turn/completed").await,
        [
            "item/completed #",
            "thread/status/changed",
            "error",
            "turn/completed #"
        ]
    );
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
    // A client that opens the thread once there is space reads the same end.
    threads.close().await;
    journal.set(FaultMode::Healthy);
    let thread = threads.get(id).await.expect("the thread");
    execute(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
}

/// The stored failures of the turns.
async fn ends(journal: &FaultyJournal, id: ThreadId) -> Vec<FailureKind> {
    let records = Journal::read(journal, id, Seq::ZERO, usize::MAX).await;
    let records = records.expect("records").into_iter();
    let ends = records.filter_map(|record| match record.body {
        RecordBody::Event(event) => match *event {
            Event::TurnEnded(it) => match it.end {
                TurnEnd::Failed(failure) => Some(failure.kind),
                end => panic!("it ended otherwise: {end:?}"),
            },
            _ => None,
        },
        RecordBody::Delta(_) => None,
    });
    ends.collect()
}

#[tokio::test(start_paused = true)]
async fn subscribers_are_notified_when_the_journal_is_full() {
    let (journal, threads, _) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut deliveries) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    journal.set(FaultMode::Full);
    let result = execute(&thread, rename(Some("a"))).await;
    let full = "the journal is full: the test injected a fault".to_owned();
    assert_eq!(result, Err(AgentError::Refused(Refusal::NotStored(full))));
    assert_eq!(
        until(&mut deliveries, "thread/closed").await,
        ["error", "thread/closed"]
    );
    assert_eq!(ends(&journal, id).await, []);
    // As long as the storage is full, opening fails without waiting.
    let thread = threads.get(id).await.expect("the thread");
    let started_at = Instant::now();
    let result = execute(&thread, rename(Some("a"))).await;
    assert!(
        matches!(result, Err(AgentError::Refused(Refusal::NotStored(_)))),
        "{result:?}"
    );
    assert_eq!(started_at.elapsed(), Duration::ZERO);
    // Once there is space, the turn ends with the announced reason.
    journal.set(FaultMode::Healthy);
    let thread = threads.get(id).await.expect("the thread");
    execute(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_turn_is_stored_as_soon_as_there_is_space() {
    let (journal, threads, _) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut deliveries) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    journal.set(FaultMode::Full);
    let result = execute(&thread, rename(Some("a"))).await;
    assert!(result.is_err(), "{result:?}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ends(&journal, id).await, []);
    journal.set(FaultMode::Healthy);
    until(&mut deliveries, "turn/completed").await;
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
    execute(&thread, rename(Some("a")))
        .await
        .expect("the thread stays");
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_journal_times_out() {
    let (journal, threads, _) = on_faulty(&[]);
    let (me, mut deliveries) = client();
    let thread = begin(&threads, ThreadId::mint(), me).await;
    journal.set(FaultMode::Unavailable);
    let result = execute(&thread, rename(Some("a"))).await;
    assert!(
        matches!(result, Err(AgentError::Refused(Refusal::NotStored(_)))),
        "{result:?}"
    );
    until(&mut deliveries, "thread/closed").await;
    let (reply_tx, reply_rx) = oneshot::channel();
    threads.start(started(ThreadId::mint()), client().0, |reply| {
        drop(reply_tx.send(reply.map(drop)));
    });
    let started = reply_rx.await.expect("an answer");
    assert_eq!(started, Err(AgentError::Unavailable));
}

/// Receives only the errors of turns.
struct ErrorSubscriber(mpsc::UnboundedSender<CodexErrorInfo>);

impl Subscriber for ErrorSubscriber {
    fn deliver(&self, delivery: &Delivery) -> bool {
        if let Delivery::Notice(notice) = delivery
            && let Notification::Error(error) = &**notice
        {
            let info = error.error.codex_error_info.clone();
            return info.is_some_and(|info| self.0.send(info).is_ok());
        }
        true
    }

    fn is_connected(&self) -> bool {
        !self.0.is_closed()
    }
}

#[tokio::test(start_paused = true)]
async fn subscribers_receive_the_reason_of_a_storage_failure() {
    for (fault, kind, is_unknown) in [
        (FaultMode::Full, "storageFull", false),
        (FaultMode::ReadOnly, "storageReadOnly", false),
        (FaultMode::Unavailable, "storageUnavailable", false),
        (FaultMode::Lost, "storageUnavailable", true),
        (FaultMode::Dropping, "storageUnavailable", true),
    ] {
        let (journal, threads, _) = on_faulty(&[&[ScriptLine::Hangs]]);
        let (errors_tx, mut errors) = mpsc::unbounded_channel();
        let me = Arc::new(ErrorSubscriber(errors_tx));
        let thread = begin(&threads, ThreadId::mint(), me).await;
        execute(&thread, turn("t1", "hi")).await.expect("a turn");
        journal.set(fault);
        let result = execute(&thread, rename(Some("a"))).await;
        let is_refused = match result {
            Err(AgentError::Refused(Refusal::OutcomeUnknown)) => is_unknown,
            Err(AgentError::Refused(Refusal::NotStored(_))) => !is_unknown,
            _ => false,
        };
        assert!(is_refused, "{fault:?}: {result:?}");
        let kind = CodexErrorInfo::Unrecognized(kind.into());
        assert_eq!(errors.recv().await, Some(kind), "{fault:?}");
    }
}

/// Returns the time until a command is rejected.
async fn time_until_rejected(fault: FaultMode) -> Duration {
    let (journal, threads, _) = on_faulty(&[]);
    let thread = begin(&threads, ThreadId::mint(), client().0).await;
    journal.set(fault);
    let started_at = Instant::now();
    let result = execute(&thread, rename(Some("a"))).await;
    assert!(result.is_err());
    started_at.elapsed()
}

#[tokio::test(start_paused = true)]
async fn an_append_with_unknown_outcome_times_out() {
    for fault in [FaultMode::Unavailable, FaultMode::Lost, FaultMode::Dropping] {
        let elapsed = time_until_rejected(fault).await;
        let range = Duration::from_secs(30)..Duration::from_secs(31);
        assert!(range.contains(&elapsed), "{fault:?}: {elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_with_unknown_outcome_is_not_repeated() {
    for (fault, recovered) in [
        (FaultMode::Unacknowledged, FaultMode::Unacknowledged),
        (FaultMode::Dropping, FaultMode::Healthy),
        (FaultMode::Lost, FaultMode::Healthy),
    ] {
        let (journal, threads, _) = on_faulty(&[]);
        let thread = begin(&threads, ThreadId::mint(), client().0).await;
        let before = thread.inspect(Thread::head).await.expect("a look");
        journal.set(fault);
        let renamed = tokio::spawn({
            let thread = thread.clone();
            async move { execute(&thread, rename(Some("a"))).await }
        });
        tokio::time::sleep(Duration::from_secs(10)).await;
        journal.set(recovered);
        assert_eq!(
            renamed.await.expect("no panic"),
            Ok(CommandOutcome::Done {})
        );
        let after = thread.inspect(Thread::head).await.expect("a look");
        assert_eq!(after, before.next(), "{fault:?}");
    }
}

/// A request that is rejected on full storage removes no subscriber.
#[tokio::test(start_paused = true)]
async fn subscribers_receive_events_after_a_full_disk() {
    type CommandFn = fn() -> Command;
    let requests: [&[CommandFn]; 3] = [
        &[|| rename(Some("a"))],
        &[|| turn("t2", "hi")],
        &[
            || rename(Some("a")),
            || turn("t2", "hi"),
            || rename(Some("b")),
        ],
    ];
    for (fault, rejected_requests) in [FaultMode::Full, FaultMode::Reserve]
        .into_iter()
        .flat_map(|fault| requests.map(|it| (fault, it)))
    {
        let lines: &[ScriptLine] = &[ScriptLine::Says("hello")];
        let (journal, threads, _) = on_faulty(&[lines, lines]);
        let (me, mut deliveries) = client();
        let thread = begin(&threads, ThreadId::mint(), me).await;
        execute(&thread, turn("t1", "hi")).await.expect("a turn");
        until(&mut deliveries, "turn/completed").await;
        journal.set(fault);
        for request in rejected_requests {
            let answer = execute(&thread, request()).await;
            let is_refused = matches!(answer, Err(AgentError::Refused(Refusal::NotStored(_))));
            assert!(is_refused, "{fault:?}: {answer:?}");
        }
        journal.set(FaultMode::Healthy);
        execute(&thread, turn("t3", "hi")).await.expect("a turn");
        let received = until(&mut deliveries, "turn/completed").await;
        let is_closed = received.iter().any(|it| it.starts_with("thread/closed"));
        assert!(!is_closed, "{fault:?}: {received:?}");
    }
}

/// Sends commands until the inbox is full, while the journal is slow.
async fn fill(journal: &FaultyJournal, thread: &Handle) {
    journal.set(FaultMode::Slow);
    let (busy, mut is_busy) = mpsc::unbounded_channel();
    loop {
        let busy = busy.clone();
        let reply = move |outcome| {
            if outcome == Err(AgentError::Refused(Refusal::Busy)) {
                let _ = busy.send(());
            }
        };
        thread.send_command(rename(Some("a")), reply).await;
        tokio::task::yield_now().await;
        if is_busy.try_recv().is_ok() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_with_a_full_inbox_is_unloaded_in_good_order() {
    let (journal, threads, _) = on_faulty(&[]);
    let id = ThreadId::mint();
    let thread = begin(&threads, id, client().0).await;
    fill(&journal, &thread).await;
    let closed = tokio::spawn({
        let threads = threads.clone();
        async move { threads.close().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    journal.set(FaultMode::Healthy);
    let started_at = Instant::now();
    closed.await.expect("no panic");
    assert_eq!(started_at.elapsed(), Duration::ZERO);
    // Its last record is the release, so no other process counts it as dead.
    let records = Journal::read(&*journal, id, Seq::ZERO, usize::MAX).await;
    let records = records.expect("records");
    let last = records.last().map(|record| &record.body);
    let released = raddle_core::RecordBody::from(raddle_core::Event::Released {});
    assert_eq!(last, Some(&released));
}

#[tokio::test(start_paused = true)]
async fn a_thread_with_a_hanging_journal_is_aborted_on_close() {
    let (journal, threads, _) = on_faulty(&[]);
    let thread = begin(&threads, ThreadId::mint(), client().0).await;
    fill(&journal, &thread).await;
    let started_at = Instant::now();
    let closed = tokio::spawn({
        let threads = threads.clone();
        async move { threads.close().await }
    });
    // The journal hangs for good: closing aborts the task.
    closed.await.expect("no panic");
    let elapsed = started_at.elapsed();
    assert!(elapsed < Duration::from_secs(40), "{elapsed:?}");
    let (reply, answer) = oneshot::channel();
    thread
        .send_command(Command::Release, |outcome| drop(reply.send(outcome)))
        .await;
    assert_eq!(answer.await, Ok(Err(AgentError::Ended)));
}
