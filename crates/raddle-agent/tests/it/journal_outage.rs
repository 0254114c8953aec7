//! A journal that is slow, away, full or hard to understand.

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
use super::{begin, client, interrupt, order, rename, started, threads, turn, until};

fn on_faulty(script: &[&[ScriptLine]]) -> (Arc<FaultyJournal>, Threads, Arc<ScriptedAnswers>) {
    let journal = Arc::new(FaultyJournal::new());
    let port: Arc<dyn Journal> = journal.clone();
    let (threads, script) = threads(&port, script);
    (journal, threads, script)
}

#[tokio::test]
async fn an_interrupt_does_not_wait_for_a_slow_disk() {
    let (journal, threads, script) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut hears) = client();
    let thread = begin(&threads, ThreadId::mint(), me).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut hears, "item/agentMessage/delta").await;
    journal.set(FaultMode::Slow);
    // An append is under way and stays so.
    let renamed = tokio::spawn({
        let thread = thread.clone();
        async move { order(&thread, rename(Some("a"))).await }
    });
    let interrupted = tokio::spawn({
        let thread = thread.clone();
        async move { order(&thread, interrupt()).await }
    });
    // The vendor is no longer asked, though nothing is stored yet.
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
    until(&mut hears, "turn/completed").await;
}

#[tokio::test]
async fn a_turn_ends_once_when_the_journal_is_full() {
    let (journal, threads, script) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut hears) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut hears, "item/agentMessage/delta").await;
    journal.set(FaultMode::Reserve);
    let refused = order(&thread, rename(Some("a"))).await;
    assert!(
        matches!(refused, Err(AgentError::Refused(Refusal::NotStored(_)))),
        "{refused:?}"
    );
    // The vendor is no longer asked, what was told of the answer stays, and the turn is over.
    script.dropped().await;
    assert_eq!(
        until(&mut hears, "turn/completed").await,
        [
            "item/completed #",
            "thread/status/changed",
            "error",
            "turn/completed #"
        ]
    );
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
    // A client that opens the thread once there is room reads the same end.
    threads.close().await;
    journal.set(FaultMode::Healthy);
    let thread = threads.get(id).await.expect("the thread");
    order(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
}

/// The failures with which turns ended, as they are stored.
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
async fn those_who_listen_are_told_when_nothing_more_can_be_stored() {
    let (journal, threads, _) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut hears) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut hears, "item/agentMessage/delta").await;
    journal.set(FaultMode::Full);
    let refused = order(&thread, rename(Some("a"))).await;
    let full = "the journal is full: it was told to fail".to_owned();
    assert_eq!(refused, Err(AgentError::Refused(Refusal::NotStored(full))));
    assert_eq!(
        until(&mut hears, "thread/closed").await,
        ["error", "thread/closed"]
    );
    assert_eq!(ends(&journal, id).await, []);
    // As long as there is no room, nobody waits for it to be opened.
    let thread = threads.get(id).await.expect("the thread");
    let begun = Instant::now();
    let refused = order(&thread, rename(Some("a"))).await;
    assert!(
        matches!(refused, Err(AgentError::Refused(Refusal::NotStored(_)))),
        "{refused:?}"
    );
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // Once there is, the turn ends for the reason that was told.
    journal.set(FaultMode::Healthy);
    let thread = threads.get(id).await.expect("the thread");
    order(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_turn_is_stored_as_soon_as_there_is_room() {
    let (journal, threads, _) = on_faulty(&[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut hears) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut hears, "item/agentMessage/delta").await;
    journal.set(FaultMode::Full);
    let refused = order(&thread, rename(Some("a"))).await;
    assert!(refused.is_err(), "{refused:?}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ends(&journal, id).await, []);
    journal.set(FaultMode::Healthy);
    until(&mut hears, "turn/completed").await;
    assert_eq!(ends(&journal, id).await, [FailureKind::StorageFull]);
    order(&thread, rename(Some("a")))
        .await
        .expect("the thread stays");
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_stays_away_is_waited_for_only_so_long() {
    let (journal, threads, _) = on_faulty(&[]);
    let (me, mut hears) = client();
    let thread = begin(&threads, ThreadId::mint(), me).await;
    journal.set(FaultMode::Unavailable);
    let refused = order(&thread, rename(Some("a"))).await;
    assert!(
        matches!(refused, Err(AgentError::Refused(Refusal::NotStored(_)))),
        "{refused:?}"
    );
    until(&mut hears, "thread/closed").await;
    let (answer, answered) = oneshot::channel();
    threads.start(started(ThreadId::mint()), client().0, |reply| {
        drop(answer.send(reply.map(drop)));
    });
    let started = answered.await.expect("an answer");
    assert_eq!(started, Err(AgentError::Unavailable));
}

/// Hears only how a turn went wrong.
struct ErrorSubscriber(mpsc::UnboundedSender<CodexErrorInfo>);

impl Subscriber for ErrorSubscriber {
    fn deliver(&self, heard: &Delivery) -> bool {
        if let Delivery::Notice(notice) = heard
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
async fn those_who_listen_are_told_why_nothing_is_stored() {
    for (mood, kind) in [
        (FaultMode::Full, "storageFull"),
        (FaultMode::ReadOnly, "storageReadOnly"),
        (FaultMode::Unavailable, "storageUnavailable"),
        (FaultMode::Lost, "storageUnavailable"),
        (FaultMode::Dropping, "storageUnavailable"),
    ] {
        let (journal, threads, _) = on_faulty(&[&[ScriptLine::Hangs]]);
        let (complaint, mut complaints) = mpsc::unbounded_channel();
        let me = Arc::new(ErrorSubscriber(complaint));
        let thread = begin(&threads, ThreadId::mint(), me).await;
        order(&thread, turn("t1", "hi")).await.expect("a turn");
        journal.set(mood);
        let refused = order(&thread, rename(Some("a"))).await;
        assert!(
            matches!(refused, Err(AgentError::Refused(Refusal::NotStored(_)))),
            "{mood:?}: {refused:?}"
        );
        let kind = CodexErrorInfo::Unrecognized(kind.into());
        assert_eq!(complaints.recv().await, Some(kind), "{mood:?}");
    }
}

/// How long an order takes until it is refused, and how many appends were tried.
async fn refused_after(mood: FaultMode) -> Duration {
    let (journal, threads, _) = on_faulty(&[]);
    let thread = begin(&threads, ThreadId::mint(), client().0).await;
    journal.set(mood);
    let begun = Instant::now();
    let refused = order(&thread, rename(Some("a"))).await;
    assert!(refused.is_err());
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_an_append_is_asked_only_so_long() {
    for mood in [FaultMode::Unavailable, FaultMode::Lost, FaultMode::Dropping] {
        let took = refused_after(mood).await;
        let range = Duration::from_secs(30)..Duration::from_secs(31);
        assert!(range.contains(&took), "{mood:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_whose_fate_was_not_known_is_not_done_twice() {
    for (mood, back) in [
        (FaultMode::Unacknowledged, FaultMode::Unacknowledged),
        (FaultMode::Dropping, FaultMode::Healthy),
        (FaultMode::Lost, FaultMode::Healthy),
    ] {
        let (journal, threads, _) = on_faulty(&[]);
        let thread = begin(&threads, ThreadId::mint(), client().0).await;
        let before = thread.inspect(Thread::head).await.expect("a look");
        journal.set(mood);
        let renamed = tokio::spawn({
            let thread = thread.clone();
            async move { order(&thread, rename(Some("a"))).await }
        });
        tokio::time::sleep(Duration::from_secs(10)).await;
        journal.set(back);
        assert_eq!(
            renamed.await.expect("no panic"),
            Ok(CommandOutcome::Done {})
        );
        let after = thread.inspect(Thread::head).await.expect("a look");
        assert_eq!(after, before.next(), "{mood:?}");
    }
}

/// A request that is refused for lack of room takes nobody's seat.
#[tokio::test(start_paused = true)]
async fn who_listens_goes_on_to_hear_after_a_full_disk() {
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
    for (mood, refused) in [FaultMode::Full, FaultMode::Reserve]
        .into_iter()
        .flat_map(|mood| requests.map(|it| (mood, it)))
    {
        let lines: &[ScriptLine] = &[ScriptLine::Says("hello")];
        let (journal, threads, _) = on_faulty(&[lines, lines]);
        let (me, mut hears) = client();
        let thread = begin(&threads, ThreadId::mint(), me).await;
        order(&thread, turn("t1", "hi")).await.expect("a turn");
        until(&mut hears, "turn/completed").await;
        journal.set(mood);
        for request in refused {
            let answer = order(&thread, request()).await;
            let is_refused = matches!(answer, Err(AgentError::Refused(Refusal::NotStored(_))));
            assert!(is_refused, "{mood:?}: {answer:?}");
        }
        journal.set(FaultMode::Healthy);
        order(&thread, turn("t3", "hi")).await.expect("a turn");
        let heard = until(&mut hears, "turn/completed").await;
        let is_closed = heard.iter().any(|it| it.starts_with("thread/closed"));
        assert!(!is_closed, "{mood:?}: {heard:?}");
    }
}

/// Gives so many orders that the thread takes no more, while the journal is slow.
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
async fn a_thread_that_takes_no_more_is_still_left_in_good_order() {
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
    let begun = Instant::now();
    closed.await.expect("no panic");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // Its last word is that it left: nobody need count it as dead.
    let records = Journal::read(&*journal, id, Seq::ZERO, usize::MAX).await;
    let records = records.expect("records");
    let last = records.last().map(|record| &record.body);
    let left = raddle_core::RecordBody::from(raddle_core::Event::Released {});
    assert_eq!(last, Some(&left));
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_nobody_holds_any_more_is_left_even_if_it_was_full() {
    let (journal, threads, _) = on_faulty(&[]);
    let thread = begin(&threads, ThreadId::mint(), client().0).await;
    fill(&journal, &thread).await;
    let begun = Instant::now();
    let closed = tokio::spawn({
        let threads = threads.clone();
        async move { threads.close().await }
    });
    // The journal hangs for good: closing cuts the thread off.
    closed.await.expect("no panic");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    let (reply, answer) = oneshot::channel();
    thread
        .send_command(Command::Release, |outcome| drop(reply.send(outcome)))
        .await;
    assert_eq!(answer.await, Ok(Err(AgentError::Ended)));
}
