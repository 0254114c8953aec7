//! Clients that come in the middle of a turn.

use std::sync::{Arc, Mutex};

use raddle_agent::{Delivery, SubscribeRequest, Subscriber, UnsubscribeResult};
use raddle_core::{ChangeSettings, SettingsChange, ThreadId};
use raddle_protocol::Notification;
use tokio::sync::{mpsc, oneshot};

use super::script::ScriptLine;
use super::{begin, client, journal, order, rename, subscribe, threads, turn, until};

/// A client that keeps the text it hears.
struct TextSubscriber {
    text: Mutex<String>,
    heard: mpsc::UnboundedSender<String>,
}

impl Subscriber for TextSubscriber {
    fn deliver(&self, heard: &Delivery) -> bool {
        let Delivery::Record { notification, seq } = heard else {
            return true;
        };
        if let Notification::AgentMessageDelta(it) = &**notification {
            self.text.lock().expect("text").push_str(&it.delta);
        }
        let number = if seq.is_some() { " #" } else { "" };
        let line = format!("{}{number}", notification.method());
        self.heard.send(line).is_ok()
    }

    fn is_connected(&self) -> bool {
        true
    }
}

fn newcomer(listener: Arc<dyn Subscriber>, model: Option<&str>) -> SubscribeRequest {
    SubscribeRequest {
        subscriber: listener,
        change: ChangeSettings {
            change: SettingsChange {
                model: model.map(|it| Some(it.to_owned())),
                ..SettingsChange::default()
            },
            principal: None,
        },
        with_usage: false,
        seen: None,
    }
}

/// Whoever comes in the middle is answered first, however long that takes; then it hears what is open and
/// all its text so far, and then what happens.
#[tokio::test]
async fn what_is_open_is_told_after_the_answer() {
    let journal = journal();
    let (threads, _) = threads(
        &journal,
        &[&[ScriptLine::Begins("hello"), ScriptLine::Hangs]],
    );
    let id = ThreadId::mint();
    let (me, mut hears) = client();
    let thread = begin(&threads, id, me).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut hears, "item/agentMessage/delta").await;

    let (heard, mut line) = mpsc::unbounded_channel();
    let reader = Arc::new(TextSubscriber {
        text: Mutex::default(),
        heard,
    });
    let (answer, answering) = oneshot::channel::<()>();
    let (asked, is_asked) = oneshot::channel();
    let reply = |subscribed: Result<raddle_agent::SubscribeResult, _>| {
        let turn = subscribed
            .expect("subscribed")
            .thread
            .turn()
            .map(|turn| turn.id.clone());
        drop(asked.send(turn));
        Box::pin(async move { answering.await.is_ok() })
            as raddle_core::ports::BoxFuture<'static, bool>
    };
    threads
        .resume(id, newcomer(reader.clone(), Some("big")), reply)
        .await;
    assert_eq!(is_asked.await.expect("asked"), Some("t1".into()));
    // Nothing happens in the thread before it is answered; who looks still sees.
    let renamed = tokio::spawn({
        let thread = thread.clone();
        async move { order(&thread, rename(Some("a"))).await }
    });
    let name = thread
        .inspect(|thread| thread.name().map(str::to_owned))
        .await;
    assert_eq!(name, Ok(None));
    assert!(line.try_recv().is_err());
    answer.send(()).expect("waited for");
    renamed.await.expect("no panic").expect("stored");
    assert_eq!(
        until(&mut line, "thread/name").await,
        [
            "thread/goal/cleared",
            "item/started",
            "item/agentMessage/delta #",
            "thread/name/updated #"
        ]
    );
    assert_eq!(*reader.text.lock().expect("text"), "hello");
    // Others were there, so what it wanted otherwise did not count.
    let model = thread
        .inspect(|thread| thread.settings().model.clone())
        .await;
    assert_eq!(model, Ok(None));
}

/// What a newcomer wants otherwise counts where nobody else is.
#[tokio::test]
async fn a_newcomer_to_an_empty_thread_may_change_it() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let (me, mut hears) = client();
    let thread = begin(&threads, id, me.clone()).await;
    assert_eq!(hears.recv().await.as_deref(), Some("thread/started #"));
    threads.unsubscribe(id, me.clone()).await;
    let (asked, is_asked) = oneshot::channel();
    let reply = |subscribed: Result<raddle_agent::SubscribeResult, _>| {
        drop(
            asked.send(
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
        .resume(id, newcomer(me.clone(), Some("big")), reply)
        .await;
    assert_eq!(is_asked.await.expect("asked").as_deref(), Some("big"));
    subscribe(&thread, me).await;
    order(&thread, rename(Some("a"))).await.expect("stored");
    // It was told with the answer, and is not told again.
    assert_eq!(
        until(&mut hears, "thread/name").await,
        ["thread/goal/cleared #", "thread/name/updated #"]
    );
}

/// Whoever cannot be answered does not hear either.
#[tokio::test]
async fn who_is_not_answered_hears_nothing() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let thread = begin(&threads, id, client().0).await;
    let (me, mut hears) = client();
    let reply = |_: Result<raddle_agent::SubscribeResult, _>| {
        Box::pin(std::future::ready(false)) as raddle_core::ports::BoxFuture<'static, bool>
    };
    threads.resume(id, newcomer(me.clone(), None), reply).await;
    order(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(
        threads.unsubscribe(id, me).await,
        UnsubscribeResult::NotSubscribed
    );
    assert!(hears.try_recv().is_err());
}
