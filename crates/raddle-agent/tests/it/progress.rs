//! Progress notifications while a turn runs.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use raddle_agent::{Delivery, FixedRules, Handle, Permit, Subscriber, Threads};
use raddle_core::ports::{BoxFuture, Journal, Tools};
use raddle_core::{Command, RunShell, Settings, ThreadId};
use raddle_protocol::{Notification, TurnProgressNotification};
use raddle_store::{FaultMode, FaultyJournal};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, advance};

use crate::script::ScriptLine;
use crate::tool_gate::TestTools;
use crate::{client, execute, interrupt, journal, rename, started, subscribe, threads_with, turn};

/// Maximum interval by the contract.
const WITHIN: Duration = Duration::from_secs(5);

/// A subscriber that wants progress, and records only that, with the time of each notification.
struct ProgressSubscriber {
    progress_tx: mpsc::UnboundedSender<(Instant, Box<TurnProgressNotification>)>,
    has_capacity: bool,
}

type ProgressReceiver = mpsc::UnboundedReceiver<(Instant, Box<TurnProgressNotification>)>;

impl Subscriber for ProgressSubscriber {
    fn deliver(&self, delivery: &Delivery) -> bool {
        match delivery {
            Delivery::Notice(notice) => match &**notice {
                Notification::TurnProgress(it) => self
                    .progress_tx
                    .send((Instant::now(), it.clone().into()))
                    .is_ok(),
                _ => true,
            },
            Delivery::Record { notification, .. } => {
                assert_ne!(notification.method(), "turn/progress", "it is no record");
                true
            }
            Delivery::Request { .. } => true,
        }
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn has_capacity(&self) -> bool {
        self.has_capacity
    }

    fn reserve(&self, _: usize) -> BoxFuture<'static, Option<Permit>> {
        match self.has_capacity {
            true => Box::pin(ready(Some(Box::new(()) as Permit))),
            false => Box::pin(pending()),
        }
    }

    fn wants_progress(&self) -> bool {
        true
    }
}

fn progress_subscriber(has_capacity: bool) -> (Arc<ProgressSubscriber>, ProgressReceiver) {
    let (progress_tx, deliveries) = mpsc::unbounded_channel();
    let subscriber = ProgressSubscriber {
        progress_tx,
        has_capacity,
    };
    (Arc::new(subscriber), deliveries)
}

/// Starts a thread with built-in tools and a tool of a client.
async fn start_thread(
    journal: &Arc<dyn Journal>,
    script: &[&[ScriptLine]],
    me: Arc<dyn Subscriber>,
) -> (Threads, Handle) {
    let rules = Arc::new(FixedRules::default());
    let (threads, _) = threads_with(journal, script, Arc::new(TestTools::default()), rules);
    let mut start = started(ThreadId::mint());
    start.settings.model = Some("loom".to_owned());
    let look = json!({"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}});
    start.settings.client_tools = vec![look];
    let (reply, answer) = oneshot::channel();
    let thread = threads.start(start, me, |it| drop(reply.send(it)));
    answer.await.expect("an answer").expect("a thread");
    (threads, thread)
}

fn in_words(progress: &TurnProgressNotification) -> String {
    let it = &progress.waiting_for;
    let name = it.name.as_deref().unwrap_or("-");
    let item = if it.item_id.is_some() { " item" } else { "" };
    format!("{} {} {name}{item}", progress.turn_id, it.kind.as_str())
}

/// Checks that progress arrives in time, repeatedly, and with the right duration.
async fn check(deliveries: &mut ProgressReceiver, expected: &str) {
    let mut last = (Instant::now(), 0);
    for time in 1..4 {
        let (at, progress) = deliveries.recv().await.expect("progress");
        assert_eq!(in_words(&progress), expected);
        assert!(at - last.0 <= WITHIN, "{expected}: {:?}", at - last.0);
        if time > 1 {
            let passed = u64::try_from((at - last.0).as_millis()).expect("a time");
            assert_eq!(progress.since_ms, last.1 + passed, "{expected}");
        }
        last = (at, progress.since_ms);
    }
}

fn shell(line: &str) -> Command {
    Command::RunShell(Box::new(RunShell {
        turn: "t1".into(),
        item: "u1".into(),
        command: TestTools::default().user_command(&Settings::default(), line),
        briefs: Vec::new(),
        principal: None,
    }))
}

#[tokio::test(start_paused = true)]
async fn progress_is_sent_every_five_seconds_whatever_the_turn_waits_for() {
    let hi = || turn("t1", "hi");
    let cases: [(Command, &[ScriptLine], &str); 8] = [
        (hi(), &[ScriptLine::Hangs], "t1 model loom"),
        (
            hi(),
            &[ScriptLine::Begins("h"), ScriptLine::Hangs],
            "t1 model loom",
        ),
        (hi(), &[ScriptLine::Breaks], "t1 retry loom"),
        (
            hi(),
            &[ScriptLine::Calls("do", "ignores")],
            "t1 tool do item",
        ),
        (
            hi(),
            &[ScriptLine::Calls("look", "{}")],
            "t1 tool look item",
        ),
        (shell("ignores"), &[], "t1 tool ignores item"),
        (
            hi(),
            &[ScriptLine::Calls("do", "beyond prints")],
            "t1 approval do item",
        ),
        (
            hi(),
            &[ScriptLine::Calls("ask", "")],
            "t1 question ask item",
        ),
    ];
    for (command, says, expected) in cases {
        let (me, mut deliveries) = progress_subscriber(true);
        let (_threads, thread) = start_thread(&journal(), &[says], me).await;
        execute(&thread, command).await.expect("a turn");
        check(&mut deliveries, expected).await;
    }
}

#[tokio::test(start_paused = true)]
async fn questions_to_the_user_take_precedence_over_running_tools() {
    let says: &[ScriptLine] = &[
        ScriptLine::Calls("do", "ignores"),
        ScriptLine::Calls("ask", ""),
        ScriptLine::Hangs,
    ];
    let (me, mut deliveries) = progress_subscriber(true);
    let (_threads, thread) = start_thread(&journal(), &[says], me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    check(&mut deliveries, "t1 question ask item").await;
}

#[tokio::test(start_paused = true)]
async fn a_blocked_journal_is_reported_as_storage() {
    for fault in [FaultMode::Slow, FaultMode::Unavailable] {
        let faulty = Arc::new(FaultyJournal::new());
        let journal: Arc<dyn Journal> = faulty.clone();
        let (me, mut deliveries) = progress_subscriber(true);
        let (_threads, thread) = start_thread(&journal, &[&[ScriptLine::Hangs]], me).await;
        execute(&thread, turn("t1", "hi")).await.expect("a turn");
        check(&mut deliveries, "t1 model loom").await;
        faulty.set(fault);
        let renamed = tokio::spawn(async move { execute(&thread, rename(Some("a"))).await });
        check(&mut deliveries, "t1 storage -").await;
        faulty.set(FaultMode::Healthy);
        renamed.await.expect("no panic").expect("stored");
        check(&mut deliveries, "t1 model loom").await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_progress_is_sent_outside_of_a_turn() {
    let (me, mut deliveries) = progress_subscriber(true);
    let (_threads, thread) = start_thread(&journal(), &[&[ScriptLine::Hangs]], me).await;
    advance(WITHIN * 4).await;
    assert!(deliveries.is_empty());
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    check(&mut deliveries, "t1 model loom").await;
    execute(&thread, interrupt()).await.expect("an end");
    advance(WITHIN * 4).await;
    execute(&thread, rename(None)).await.expect("stored");
    assert!(deliveries.is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_live_subscribers_that_want_progress_receive_it() {
    let (me, mut deliveries) = progress_subscriber(true);
    let (slow, slow_deliveries) = progress_subscriber(false);
    let (other, mut other_deliveries) = client();
    let (_threads, thread) = start_thread(&journal(), &[&[ScriptLine::Hangs]], me).await;
    subscribe(&thread, other).await;
    subscribe(&thread, slow).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    check(&mut deliveries, "t1 model loom").await;
    assert!(slow_deliveries.is_empty());
    while let Ok(line) = other_deliveries.try_recv() {
        assert!(!line.starts_with("turn/progress"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_subscriber_receives_progress_too() {
    let (other, _hears) = client();
    let (_threads, thread) = start_thread(&journal(), &[&[ScriptLine::Hangs]], other).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    advance(WITHIN * 4).await;
    let (me, mut deliveries) = progress_subscriber(true);
    subscribe(&thread, me).await;
    check(&mut deliveries, "t1 model loom").await;
}
