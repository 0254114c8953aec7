//! Slow subscribers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use raddle_agent::{Delivery, Permit, Subscriber, Threads};
use raddle_core::ports::BoxFuture;
use raddle_core::{CursorStatus, ThreadId};
use raddle_protocol::Notification;
use tokio::sync::{Notify, mpsc, oneshot};

use super::script::ScriptLine;
use super::{begin, client, execute, journal, rename, subscribe, threads, turn, until};

/// A subscriber that accepts nothing while it is full.
struct SlowSubscriber {
    full: AtomicBool,
    emptied: Arc<Notify>,
    numbers: Mutex<Vec<u64>>,
    deliveries_tx: mpsc::UnboundedSender<String>,
}

impl SlowSubscriber {
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (deliveries_tx, deliveries) = mpsc::unbounded_channel();
        let slow = Self {
            full: AtomicBool::new(false),
            emptied: Arc::default(),
            numbers: Mutex::default(),
            deliveries_tx,
        };
        (Arc::new(slow), deliveries)
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
    fn deliver(&self, delivery: &Delivery) -> bool {
        let line = match delivery {
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
        self.deliveries_tx.send(line).is_ok()
    }

    fn is_connected(&self) -> bool {
        !self.deliveries_tx.is_closed()
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

/// Starts a thread with a subscriber that is full, and a witness that receives everything.
async fn with_slow_subscriber(
    script: &[&[ScriptLine]],
) -> (
    Threads,
    raddle_agent::Handle,
    (Arc<SlowSubscriber>, mpsc::UnboundedReceiver<String>),
    mpsc::UnboundedReceiver<String>,
) {
    let (threads, _) = threads(&journal(), script);
    let (witness, mut witness_deliveries) = client();
    let thread = begin(&threads, ThreadId::mint(), witness).await;
    let (slow, deliveries) = SlowSubscriber::new();
    slow.fill();
    subscribe(&thread, slow.clone()).await;
    execute(&thread, rename(Some("a"))).await.expect("a name");
    until(&mut witness_deliveries, "thread/name/updated").await;
    (threads, thread, (slow, deliveries), witness_deliveries)
}

fn drain(deliveries: &mut mpsc::UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| deliveries.try_recv().ok()).collect()
}

#[tokio::test]
async fn a_slow_subscriber_catches_up_and_then_receives_live_events() {
    let script: &[&[ScriptLine]] = &[
        &[ScriptLine::Says("one")],
        &[ScriptLine::Begins("two"), ScriptLine::Hangs],
    ];
    let (_threads, thread, (slow, mut deliveries), mut witness_deliveries) =
        with_slow_subscriber(script).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut witness_deliveries, "turn/completed").await;
    execute(&thread, turn("t2", "hi")).await.expect("a turn");
    until(&mut witness_deliveries, "item/agentMessage/delta").await;
    assert_eq!(drain(&mut deliveries), [""; 0]);

    slow.empty();
    let received = until(&mut deliveries, "text two").await;
    assert_eq!(
        received,
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
    execute(&thread, rename(Some("b"))).await.expect("a name");
    assert_eq!(
        deliveries.recv().await.as_deref(),
        Some("thread/name/updated")
    );
    let numbers = slow.numbers.lock().expect("numbers").clone();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[tokio::test]
async fn a_slow_subscriber_receives_all_stored_records_after_an_unload() {
    let script: &[&[ScriptLine]] = &[&[ScriptLine::Says("one")]];
    let (threads, thread, (slow, mut deliveries), mut witness_deliveries) =
        with_slow_subscriber(script).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut witness_deliveries, "turn/completed").await;
    drop(thread);
    threads.close().await;
    until(&mut witness_deliveries, "thread/closed").await;
    slow.empty();
    let received = until(&mut deliveries, "thread/closed").await;
    assert_eq!(
        received[received.len() - 2..],
        ["turn/completed", "thread/closed"]
    );
}

#[tokio::test]
async fn a_slow_subscriber_is_notified_once_of_a_deletion() {
    let (threads, thread, (slow, mut deliveries), mut witness_deliveries) =
        with_slow_subscriber(&[]).await;
    let delete = raddle_core::Command::Delete(raddle_core::Delete { principal: None });
    execute(&thread, delete).await.expect("deleted");
    until(&mut witness_deliveries, "thread/deleted").await;
    slow.empty();
    until(&mut deliveries, "thread/deleted").await;
    drop((thread, threads, slow));
    assert_eq!(deliveries.recv().await, None);
}

#[tokio::test]
async fn a_slow_subscriber_receives_nothing_after_it_unsubscribes() {
    let script: &[&[ScriptLine]] = &[&[ScriptLine::Says("one")]];
    let (_threads, thread, (slow, mut deliveries), mut witness_deliveries) =
        with_slow_subscriber(script).await;
    assert_eq!(thread.unsubscribe(slow.clone()).await, Ok(true));
    slow.empty();
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut witness_deliveries, "turn/completed").await;
    assert_eq!(drain(&mut deliveries), [""; 0]);
}

#[tokio::test]
async fn a_returning_subscriber_catches_up_at_its_own_pace() {
    let (_threads, thread, (slow, mut deliveries), mut witness_deliveries) =
        with_slow_subscriber(&[]).await;
    assert_eq!(thread.unsubscribe(slow.clone()).await, Ok(true));
    let (other, _) = client();
    let cursor = subscribe(&thread, other).await.head;
    for name in ["b", "c"] {
        execute(&thread, rename(Some(name))).await.expect("a name");
        until(&mut witness_deliveries, "thread/name/updated").await;
    }
    let (reply, answer) = oneshot::channel();
    let reply = |subscribed| drop(reply.send(subscribed));
    thread.subscribe(Some(cursor), slow.clone(), reply).await;
    let subscribed = answer.await.expect("an answer").expect("subscribed");
    assert_eq!(
        (subscribed.cursor, subscribed.after),
        (CursorStatus::Good, cursor)
    );
    execute(&thread, rename(Some("d"))).await.expect("a name");
    until(&mut witness_deliveries, "thread/name/updated").await;
    assert_eq!(drain(&mut deliveries), [""; 0]);

    slow.empty();
    for _ in 0..3 {
        assert_eq!(
            deliveries.recv().await.as_deref(),
            Some("thread/name/updated")
        );
    }
    let numbers = slow.numbers.lock().expect("numbers").clone();
    assert_eq!(numbers, [1, 2, 3].map(|after| cursor.0 + after));
}
