//! Clients that take less than comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use raddle_agent::{Delivery, Permit, Subscriber, Threads};
use raddle_core::ports::BoxFuture;
use raddle_core::{CursorStatus, ThreadId};
use raddle_protocol::Notification;
use tokio::sync::{Notify, mpsc, oneshot};

use super::script::ScriptLine;
use super::{begin, client, journal, order, rename, subscribe, threads, turn, until};

/// A client that takes nothing while it is full.
struct SlowSubscriber {
    full: AtomicBool,
    emptied: Arc<Notify>,
    numbers: Mutex<Vec<u64>>,
    heard: mpsc::UnboundedSender<String>,
}

impl SlowSubscriber {
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (heard, hears) = mpsc::unbounded_channel();
        let slow = Self {
            full: AtomicBool::new(false),
            emptied: Arc::default(),
            numbers: Mutex::default(),
            heard,
        };
        (Arc::new(slow), hears)
    }

    fn fill(&self) {
        self.full.store(true, Ordering::SeqCst);
    }

    fn empty(&self) {
        self.full.store(false, Ordering::SeqCst);
        self.emptied.notify_one();
    }
}

impl Subscriber for SlowSubscriber {
    fn deliver(&self, heard: &Delivery) -> bool {
        let line = match heard {
            Delivery::Record { notification, seq } => {
                self.numbers
                    .lock()
                    .expect("numbers")
                    .extend(seq.map(|seq| seq.0));
                match &**notification {
                    Notification::AgentMessageDelta(it) => format!("text {}", it.delta),
                    other => other.method().to_owned(),
                }
            }
            Delivery::Notice(notice) => notice.method().to_owned(),
            Delivery::Request { method, .. } => format!("ask {method}"),
        };
        self.heard.send(line).is_ok()
    }

    fn is_connected(&self) -> bool {
        !self.heard.is_closed()
    }

    fn has_capacity(&self) -> bool {
        !self.full.load(Ordering::SeqCst)
    }

    fn reserve(&self, _: usize) -> BoxFuture<'static, Option<Permit>> {
        let (emptied, is_full) = (self.emptied.clone(), !self.has_capacity());
        Box::pin(async move {
            if is_full {
                emptied.notified().await;
            }
            Some(Box::new(()) as Permit)
        })
    }
}

/// A thread with one who is full, and one who sees everything.
async fn with_one_who_is_full(
    script: &[&[ScriptLine]],
) -> (
    Threads,
    raddle_agent::Handle,
    (Arc<SlowSubscriber>, mpsc::UnboundedReceiver<String>),
    mpsc::UnboundedReceiver<String>,
) {
    let (threads, _) = threads(&journal(), script);
    let (witness, mut sees) = client();
    let thread = begin(&threads, ThreadId::mint(), witness).await;
    let (slow, hears) = SlowSubscriber::new();
    slow.fill();
    subscribe(&thread, slow.clone()).await;
    order(&thread, rename(Some("a"))).await.expect("a name");
    until(&mut sees, "thread/name/updated").await;
    (threads, thread, (slow, hears), sees)
}

fn there(hears: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| hears.try_recv().ok()).collect()
}

#[tokio::test]
async fn whoever_falls_behind_is_told_the_rest_and_then_hears_live() {
    let script: &[&[ScriptLine]] = &[
        &[ScriptLine::Says("one")],
        &[ScriptLine::Begins("two"), ScriptLine::Hangs],
    ];
    let (_threads, thread, (slow, mut hears), mut sees) = with_one_who_is_full(script).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut sees, "turn/completed").await;
    order(&thread, turn("t2", "hi")).await.expect("a turn");
    until(&mut sees, "item/agentMessage/delta").await;
    assert_eq!(there(&mut hears), [""; 0]);

    slow.empty();
    let told = until(&mut hears, "text two").await;
    assert_eq!(
        told,
        [
            "thread/name/updated",
            "thread/status/changed",
            "turn/started",
            "item/started",
            "item/completed",
            "item/started",
            // Its text is in the completed item.
            "item/completed",
            "thread/tokenUsage/updated",
            "thread/status/changed",
            "turn/completed",
            "thread/status/changed",
            "turn/started",
            "item/started",
            "item/completed",
            "item/started",
            "text two",
        ]
    );
    order(&thread, rename(Some("b"))).await.expect("a name");
    assert_eq!(hears.recv().await.as_deref(), Some("thread/name/updated"));
    let numbers = slow.numbers.lock().expect("numbers").clone();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[tokio::test]
async fn whoever_is_behind_when_a_thread_is_left_is_told_all_that_was_stored() {
    let script: &[&[ScriptLine]] = &[&[ScriptLine::Says("one")]];
    let (threads, thread, (slow, mut hears), mut sees) = with_one_who_is_full(script).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut sees, "turn/completed").await;
    drop(thread);
    threads.close().await;
    until(&mut sees, "thread/closed").await;
    slow.empty();
    let told = until(&mut hears, "thread/closed").await;
    assert_eq!(told[told.len() - 2..], ["turn/completed", "thread/closed"]);
}

#[tokio::test]
async fn whoever_is_behind_hears_once_that_a_thread_is_deleted() {
    let (threads, thread, (slow, mut hears), mut sees) = with_one_who_is_full(&[]).await;
    let delete = raddle_core::Command::Delete(raddle_core::Delete { principal: None });
    order(&thread, delete).await.expect("deleted");
    until(&mut sees, "thread/deleted").await;
    slow.empty();
    until(&mut hears, "thread/deleted").await;
    drop((thread, threads, slow));
    assert_eq!(hears.recv().await, None);
}

#[tokio::test]
async fn whoever_unsubscribes_while_it_is_behind_hears_nothing_more() {
    let script: &[&[ScriptLine]] = &[&[ScriptLine::Says("one")]];
    let (_threads, thread, (slow, mut hears), mut sees) = with_one_who_is_full(script).await;
    assert_eq!(thread.unsubscribe(slow.clone()).await, Ok(true));
    slow.empty();
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut sees, "turn/completed").await;
    assert_eq!(there(&mut hears), [""; 0]);
}

#[tokio::test]
async fn whoever_comes_back_after_a_record_reads_the_rest_at_its_own_pace() {
    let (_threads, thread, (slow, mut hears), mut sees) = with_one_who_is_full(&[]).await;
    assert_eq!(thread.unsubscribe(slow.clone()).await, Ok(true));
    let (other, _) = client();
    let seen = subscribe(&thread, other).await.head;
    for name in ["b", "c"] {
        order(&thread, rename(Some(name))).await.expect("a name");
        until(&mut sees, "thread/name/updated").await;
    }
    let (reply, answer) = oneshot::channel();
    let reply = |subscribed| drop(reply.send(subscribed));
    thread.subscribe(Some(seen), slow.clone(), reply).await;
    let subscribed = answer.await.expect("an answer").expect("subscribed");
    assert_eq!(
        (subscribed.cursor, subscribed.after),
        (CursorStatus::Good, seen)
    );
    order(&thread, rename(Some("d"))).await.expect("a name");
    until(&mut sees, "thread/name/updated").await;
    assert_eq!(there(&mut hears), [""; 0]);

    slow.empty();
    for _ in 0..3 {
        assert_eq!(hears.recv().await.as_deref(), Some("thread/name/updated"));
    }
    let numbers = slow.numbers.lock().expect("numbers").clone();
    assert_eq!(numbers, [1, 2, 3].map(|after| seen.0 + after));
}
