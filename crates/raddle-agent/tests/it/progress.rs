//! What a turn waits for is said while it runs.

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
use crate::{client, interrupt, journal, order, rename, started, subscribe, threads_with, turn};

/// What is promised.
const WITHIN: Duration = Duration::from_secs(5);

/// A client that wants to know, and writes down only that, each with when it was said.
struct ProgressSubscriber {
    hears: mpsc::UnboundedSender<(Instant, Box<TurnProgressNotification>)>,
    has_room: bool,
}

type ProgressReceiver = mpsc::UnboundedReceiver<(Instant, Box<TurnProgressNotification>)>;

impl Subscriber for ProgressSubscriber {
    fn deliver(&self, heard: &Delivery) -> bool {
        match heard {
            Delivery::Notice(notice) => match &**notice {
                Notification::TurnProgress(it) => {
                    self.hears.send((Instant::now(), it.clone().into())).is_ok()
                }
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
        self.has_room
    }

    fn reserve(&self, _: usize) -> BoxFuture<'static, Option<Permit>> {
        match self.has_room {
            true => Box::pin(ready(Some(Box::new(()) as Permit))),
            false => Box::pin(pending()),
        }
    }

    fn wants_progress(&self) -> bool {
        true
    }
}

fn keen(has_room: bool) -> (Arc<ProgressSubscriber>, ProgressReceiver) {
    let (heard, hears) = mpsc::unbounded_channel();
    let keen = ProgressSubscriber {
        hears: heard,
        has_room,
    };
    (Arc::new(keen), hears)
}

/// A thread with tools of ours and one of a client's.
async fn begun(
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

fn in_words(told: &TurnProgressNotification) -> String {
    let it = &told.waiting_for;
    let name = it.name.as_deref().unwrap_or("-");
    let item = if it.item_id.is_some() { " item" } else { "" };
    format!("{} {} {name}{item}", told.turn_id, it.kind.as_str())
}

/// It is said in time, again and again, and for how long.
async fn check(hears: &mut ProgressReceiver, wanted: &str) {
    let mut last = (Instant::now(), 0);
    for time in 1..4 {
        let (at, told) = hears.recv().await.expect("progress");
        assert_eq!(in_words(&told), wanted);
        assert!(at - last.0 <= WITHIN, "{wanted}: {:?}", at - last.0);
        if time > 1 {
            let passed = u64::try_from((at - last.0).as_millis()).expect("a time");
            assert_eq!(told.since_ms, last.1 + passed, "{wanted}");
        }
        last = (at, told.since_ms);
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
async fn whatever_a_turn_waits_for_is_said_every_five_seconds() {
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
    for (command, says, wanted) in cases {
        let (me, mut hears) = keen(true);
        let (_threads, thread) = begun(&journal(), &[says], me).await;
        order(&thread, command).await.expect("a turn");
        check(&mut hears, wanted).await;
    }
}

#[tokio::test(start_paused = true)]
async fn people_are_named_before_what_runs_beside_them() {
    let says: &[ScriptLine] = &[
        ScriptLine::Calls("do", "ignores"),
        ScriptLine::Calls("ask", ""),
        ScriptLine::Hangs,
    ];
    let (me, mut hears) = keen(true);
    let (_threads, thread) = begun(&journal(), &[says], me).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    check(&mut hears, "t1 question ask item").await;
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_takes_nothing_is_named() {
    for mood in [FaultMode::Slow, FaultMode::Unavailable] {
        let faulty = Arc::new(FaultyJournal::new());
        let journal: Arc<dyn Journal> = faulty.clone();
        let (me, mut hears) = keen(true);
        let (_threads, thread) = begun(&journal, &[&[ScriptLine::Hangs]], me).await;
        order(&thread, turn("t1", "hi")).await.expect("a turn");
        check(&mut hears, "t1 model loom").await;
        faulty.set(mood);
        let renamed = tokio::spawn(async move { order(&thread, rename(Some("a"))).await });
        check(&mut hears, "t1 storage -").await;
        faulty.set(FaultMode::Healthy);
        renamed.await.expect("no panic").expect("stored");
        check(&mut hears, "t1 model loom").await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_before_a_turn_or_after_it() {
    let (me, mut hears) = keen(true);
    let (_threads, thread) = begun(&journal(), &[&[ScriptLine::Hangs]], me).await;
    advance(WITHIN * 4).await;
    assert!(hears.is_empty());
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    check(&mut hears, "t1 model loom").await;
    order(&thread, interrupt()).await.expect("an end");
    advance(WITHIN * 4).await;
    order(&thread, rename(None)).await.expect("stored");
    assert!(hears.is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_those_hear_it_who_want_to_and_read_along() {
    let (me, mut hears) = keen(true);
    let (slow, slow_hears) = keen(false);
    let (other, mut other_hears) = client();
    let (_threads, thread) = begun(&journal(), &[&[ScriptLine::Hangs]], me).await;
    subscribe(&thread, other).await;
    subscribe(&thread, slow).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    check(&mut hears, "t1 model loom").await;
    assert!(slow_hears.is_empty());
    while let Ok(line) = other_hears.try_recv() {
        assert!(!line.starts_with("turn/progress"), "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_hears_it_too() {
    let (other, _hears) = client();
    let (_threads, thread) = begun(&journal(), &[&[ScriptLine::Hangs]], other).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    advance(WITHIN * 4).await;
    let (me, mut hears) = keen(true);
    subscribe(&thread, me).await;
    check(&mut hears, "t1 model loom").await;
}
