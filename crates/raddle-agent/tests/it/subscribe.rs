//! Subscribers that join in the middle of a turn.

use std::sync::{Arc, Mutex};

use raddle_agent::{Delivery, SubscribeRequest, Subscriber, UnsubscribeResult};
use raddle_core::{ChangeSettings, SettingsChange, ThreadId};
use raddle_protocol::Notification;
use tokio::sync::{mpsc, oneshot};

use super::script::ScriptLine;
use super::{begin, client, execute, journal, rename, subscribe, threads, turn, until};

/// A subscriber that collects the text it receives.
struct TextSubscriber {
    text: Mutex<String>,
    deliveries_tx: mpsc::UnboundedSender<String>,
}

impl Subscriber for TextSubscriber {
    fn deliver(&self, delivery: &Delivery) -> bool {
        let Delivery::Record { notification, seq } = delivery else {
            return true;
        };
        if let Notification::AgentMessageDelta(it) = &**notification {
            self.text.lock().expect("text").push_str(&it.delta);
        }
        let number = if seq.is_some() { " #" } else { "" };
        let line = format!("{}{number}", notification.method());
        self.deliveries_tx.send(line).is_ok()
    }

    fn is_connected(&self) -> bool {
        true
    }
}

fn subscribe_request(subscriber: Arc<dyn Subscriber>, model: Option<&str>) -> SubscribeRequest {
    SubscribeRequest {
        subscriber,
        change: ChangeSettings {
            change: SettingsChange {
                model: model.map(|it| Some(it.to_owned())),
                ..SettingsChange::default()
            },
            principal: None,
        },
        with_usage: false,
        cursor: None,
    }
}

/// A subscriber that joins in the middle of a turn receives the reply first, however long that
/// takes. Then it receives the open items with their text so far, and then live events.
#[tokio::test]
async fn open_items_are_delivered_after_the_reply() {
    let journal = journal();
    let (threads, _) = threads(
        &journal,
        &[&[ScriptLine::Begins("hello"), ScriptLine::Hangs]],
    );
    let id = ThreadId::mint();
    let (me, mut deliveries) = client();
    let thread = begin(&threads, id, me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;

    let (deliveries_tx, mut text_deliveries) = mpsc::unbounded_channel();
    let reader = Arc::new(TextSubscriber {
        text: Mutex::default(),
        deliveries_tx,
    });
    let (answer, answering) = oneshot::channel::<()>();
    let (reply_tx, reply_rx) = oneshot::channel();
    let reply = |subscribed: Result<raddle_agent::SubscribeResult, _>| {
        let turn = subscribed
            .expect("subscribed")
            .thread
            .turn()
            .map(|turn| turn.id.clone());
        drop(reply_tx.send(turn));
        Box::pin(async move { answering.await.is_ok() })
            as raddle_core::ports::BoxFuture<'static, bool>
    };
    threads
        .resume(id, subscribe_request(reader.clone(), Some("big")), reply)
        .await;
    assert_eq!(reply_rx.await.expect("asked"), Some("t1".into()));
    // Nothing happens in the thread before the reply; reads still work.
    let renamed = tokio::spawn({
        let thread = thread.clone();
        async move { execute(&thread, rename(Some("a"))).await }
    });
    let name = thread
        .inspect(|thread| thread.name().map(str::to_owned))
        .await;
    assert_eq!(name, Ok(None));
    assert!(text_deliveries.try_recv().is_err());
    answer.send(()).expect("waited for");
    renamed.await.expect("no panic").expect("stored");
    assert_eq!(
        until(&mut text_deliveries, "thread/name").await,
        [
            "thread/goal/cleared",
            "item/started",
            "item/agentMessage/delta #",
            "thread/name/updated #"
        ]
    );
    assert_eq!(*reader.text.lock().expect("text"), "hello");
    // There were other subscribers, so its changes were ignored.
    let model = thread
        .inspect(|thread| thread.settings().model.clone())
        .await;
    assert_eq!(model, Ok(None));
}

/// A new subscriber's changes apply if there is no other subscriber.
#[tokio::test]
async fn the_only_subscriber_may_change_settings() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let (me, mut deliveries) = client();
    let thread = begin(&threads, id, me.clone()).await;
    assert_eq!(deliveries.recv().await.as_deref(), Some("thread/started #"));
    threads.unsubscribe(id, me.clone()).await;
    let (reply_tx, reply_rx) = oneshot::channel();
    let reply = |subscribed: Result<raddle_agent::SubscribeResult, _>| {
        drop(
            reply_tx.send(
                subscribed
                    .expect("subscribed")
                    .thread
                    .settings()
                    .model
                    .clone(),
            ),
        );
        Box::pin(std::future::ready(true)) as raddle_core::ports::BoxFuture<'static, bool>
    };
    threads
        .resume(id, subscribe_request(me.clone(), Some("big")), reply)
        .await;
    assert_eq!(reply_rx.await.expect("asked").as_deref(), Some("big"));
    subscribe(&thread, me).await;
    execute(&thread, rename(Some("a"))).await.expect("stored");
    // The change was part of the reply, and is not announced again.
    assert_eq!(
        until(&mut deliveries, "thread/name").await,
        ["thread/goal/cleared #", "thread/name/updated #"]
    );
}

/// A subscriber without a reply receives no events.
#[tokio::test]
async fn a_subscriber_without_a_reply_receives_nothing() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let thread = begin(&threads, id, client().0).await;
    let (me, mut deliveries) = client();
    let reply = |_: Result<raddle_agent::SubscribeResult, _>| {
        Box::pin(std::future::ready(false)) as raddle_core::ports::BoxFuture<'static, bool>
    };
    threads
        .resume(id, subscribe_request(me.clone(), None), reply)
        .await;
    execute(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(
        threads.unsubscribe(id, me).await,
        UnsubscribeResult::NotSubscribed
    );
    assert!(deliveries.try_recv().is_err());
}
