//! Threads that are unloaded, and concurrent commands to them.

use std::sync::Arc;
use std::time::Duration;

use raddle_agent::{Delivery, Subscriber, UnsubscribeResult};
use raddle_core::ports::Journal;
use raddle_core::{CommandOutcome, ThreadId};
use raddle_store::{FaultMode, FaultyJournal};
use tokio::sync::oneshot;

use super::script::ScriptLine;
use super::{begin, client, execute, journal, rename, subscribe, threads, turn, until};

#[tokio::test(start_paused = true)]
async fn an_idle_thread_is_unloaded_and_can_be_opened_again() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let (me, mut deliveries) = client();
    threads.subscribe_global(&me);
    begin(&threads, id, me.clone()).await;
    assert_eq!(
        threads.unsubscribe(id, me.clone()).await,
        UnsubscribeResult::Done
    );
    let started_at = tokio::time::Instant::now();
    assert_eq!(
        until(&mut deliveries, "thread/closed").await,
        ["thread/started #", "thread/status/changed", "thread/closed"]
    );
    assert_eq!(started_at.elapsed().as_secs(), 60);
    assert_eq!(
        threads.unsubscribe(id, me).await,
        UnsubscribeResult::NotLive
    );
    let thread = threads.get(id).await.expect("the thread");
    execute(&thread, rename(Some("a"))).await.expect("stored");
}

#[tokio::test(start_paused = true)]
async fn a_thread_in_use_stays_loaded() {
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

/// The next task executes the commands that arrive while a thread is unloaded.
#[tokio::test(start_paused = true)]
async fn a_late_command_is_executed_by_the_next_task() {
    let journal = Arc::new(FaultyJournal::new());
    let port: Arc<dyn Journal> = journal.clone();
    let (threads, _) = threads(&port, &[]);
    let id = ThreadId::mint();
    let (me, _hears) = client();
    begin(&threads, id, me.clone()).await;
    threads.unsubscribe(id, me).await;
    journal.set(FaultMode::Slow);
    // By now the release is being appended, and stays so.
    tokio::time::sleep(Duration::from_secs(61)).await;
    let (reply, answer) = oneshot::channel();
    let sending = tokio::spawn({
        let threads = threads.clone();
        async move {
            let reply = |done: raddle_agent::CommandResult<'_>| {
                drop(reply.send(done.map(|done| done.outcome)));
            };
            threads.send_command(id, rename(Some("a")), reply).await;
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!sending.is_finished());
    journal.set(FaultMode::Healthy);
    sending.await.expect("no panic");
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

/// A subscriber that panics.
struct PanickingSubscriber;

impl Subscriber for PanickingSubscriber {
    fn deliver(&self, delivery: &Delivery) -> bool {
        match delivery {
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
    let (me, mut deliveries) = client();
    let thread = begin(&threads, id, me).await;
    subscribe(&thread, Arc::new(PanickingSubscriber)).await;
    let (witness, mut witness_deliveries) = client();
    let healthy = begin(&threads, ThreadId::mint(), witness).await;
    // It was stored and answered before the panic.
    execute(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(
        until(&mut deliveries, "thread/closed").await,
        ["thread/started #", "thread/name/updated #", "thread/closed"]
    );
    execute(&healthy, turn("t1", "hi")).await.expect("a turn");
    until(&mut witness_deliveries, "turn/completed").await;
    // The thread itself is intact as stored.
    let thread = threads.get(id).await.expect("the thread");
    let name = thread
        .inspect(|thread| thread.name().map(str::to_owned))
        .await;
    assert_eq!(name, Ok(Some("a".to_owned())));
}
