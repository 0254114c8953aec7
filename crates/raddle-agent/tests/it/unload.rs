//! Threads that leave memory, and those that ask for them meanwhile.

use std::sync::Arc;
use std::time::Duration;

use raddle_agent::{Delivery, Subscriber, UnsubscribeResult};
use raddle_core::ports::Journal;
use raddle_core::{CommandOutcome, ThreadId};
use raddle_store::{FaultMode, FaultyJournal};
use tokio::sync::oneshot;

use super::script::ScriptLine;
use super::{begin, client, journal, order, rename, subscribe, threads, turn, until};

#[tokio::test(start_paused = true)]
async fn a_thread_nobody_needs_is_left_and_can_be_opened_again() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let (me, mut hears) = client();
    threads.subscribe_global(&me);
    begin(&threads, id, me.clone()).await;
    assert_eq!(
        threads.unsubscribe(id, me.clone()).await,
        UnsubscribeResult::Done
    );
    let begun = tokio::time::Instant::now();
    assert_eq!(
        until(&mut hears, "thread/closed").await,
        ["thread/started #", "thread/status/changed", "thread/closed"]
    );
    assert_eq!(begun.elapsed().as_secs(), 60);
    assert_eq!(
        threads.unsubscribe(id, me).await,
        UnsubscribeResult::NotLive
    );
    let thread = threads.get(id).await.expect("the thread");
    order(&thread, rename(Some("a"))).await.expect("stored");
}

#[tokio::test(start_paused = true)]
async fn whoever_uses_a_thread_keeps_it() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let (me, _hears) = client();
    let thread = begin(&threads, id, me.clone()).await;
    threads.unsubscribe(id, me).await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(40)).await;
        thread.inspect(|_| ()).await.expect("it is there");
    }
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(threads.live(id).is_none());
}

/// What comes while a thread is being left is carried out by its next task.
#[tokio::test(start_paused = true)]
async fn an_order_that_comes_too_late_is_carried_out_all_the_same() {
    let journal = Arc::new(FaultyJournal::new());
    let port: Arc<dyn Journal> = journal.clone();
    let (threads, _) = threads(&port, &[]);
    let id = ThreadId::mint();
    let (me, _hears) = client();
    begin(&threads, id, me.clone()).await;
    threads.unsubscribe(id, me).await;
    journal.set(FaultMode::Slow);
    // By now its last word is on its way to the journal, and stays so.
    tokio::time::sleep(Duration::from_secs(61)).await;
    let (reply, answer) = oneshot::channel();
    let ordered = tokio::spawn({
        let threads = threads.clone();
        async move {
            let reply = |done: raddle_agent::CommandResult<'_>| {
                drop(reply.send(done.map(|done| done.outcome)));
            };
            threads.send_command(id, rename(Some("a")), reply).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!ordered.is_finished());
    journal.set(FaultMode::Healthy);
    ordered.await.expect("no panic");
    assert_eq!(
        answer.await.expect("an answer"),
        Ok(CommandOutcome::Done {})
    );
    let thread = threads.get(id).await.expect("the thread");
    let name = thread
        .inspect(|thread| thread.name().map(str::to_owned))
        .await;
    assert_eq!(name, Ok(Some("a".to_owned())));
}

/// A listener with a fault of ours in it.
struct PanickingSubscriber;

impl Subscriber for PanickingSubscriber {
    fn deliver(&self, heard: &Delivery) -> bool {
        match heard {
            Delivery::Record { notification, .. } => {
                assert_ne!(notification.method(), "thread/name/updated");
                true
            }
            Delivery::Notice(_) | Delivery::Request { .. } => true,
        }
    }

    fn is_connected(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_fault_in_one_thread_ends_only_its_task() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[&[ScriptLine::Says("hello")]]);
    let id = ThreadId::mint();
    let (me, mut hears) = client();
    let thread = begin(&threads, id, me).await;
    subscribe(&thread, Arc::new(PanickingSubscriber)).await;
    let (witness, mut sees) = client();
    let well = begin(&threads, ThreadId::mint(), witness).await;
    // It was stored and answered before the fault.
    order(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(
        until(&mut hears, "thread/closed").await,
        ["thread/started #", "thread/name/updated #", "thread/closed"]
    );
    order(&well, turn("t1", "hi")).await.expect("a turn");
    until(&mut sees, "turn/completed").await;
    // The thread itself is as it was stored.
    let thread = threads.get(id).await.expect("the thread");
    let name = thread
        .inspect(|thread| thread.name().map(str::to_owned))
        .await;
    assert_eq!(name, Ok(Some("a".to_owned())));
}
