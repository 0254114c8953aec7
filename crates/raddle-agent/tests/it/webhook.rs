//! Questions that are put to an address while nobody is there.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use raddle_agent::FixedRules;
use raddle_core::policy::{Policy, UnattendedPolicy};
use raddle_core::ports::{BoxFuture, Webhook, WebhookDecision, WebhookRequest};
use raddle_core::{Event, Resolution};
use serde_json::json;
use tokio::sync::Notify;

use crate::script::ScriptLine;
use crate::tool_gate::{GateHarness, stage_asking};
use crate::{client, order, subscribe, turn, until};

/// Someone far away who says this, or nothing ever.
struct FakeWebhook {
    says: Option<Result<WebhookDecision, String>>,
    heard: Mutex<Vec<WebhookRequest>>,
    hears: Notify,
    /// Dropped with whoever waits for an answer.
    waits: Arc<()>,
}

impl Webhook for FakeWebhook {
    fn send(&self, put: WebhookRequest) -> BoxFuture<'static, Result<WebhookDecision, String>> {
        self.heard.lock().expect("heard").push(put);
        self.hears.notify_one();
        let (says, waits) = (self.says.clone(), self.waits.clone());
        Box::pin(async move {
            let _waits = waits;
            match says {
                Some(says) => says,
                None => std::future::pending().await,
            }
        })
    }
}

/// A thread that asks whether a command may run.
async fn asking(
    says: Option<Result<WebhookDecision, String>>,
    after_ms: u64,
) -> (
    Arc<FakeWebhook>,
    GateHarness,
    Arc<dyn raddle_agent::Subscriber>,
) {
    asking_about("beyond prints", says, after_ms).await
}

async fn asking_about(
    call: &'static str,
    says: Option<Result<WebhookDecision, String>>,
    after_ms: u64,
) -> (
    Arc<FakeWebhook>,
    GateHarness,
    Arc<dyn raddle_agent::Subscriber>,
) {
    let far = Arc::new(FakeWebhook {
        says,
        heard: Mutex::default(),
        hears: Notify::new(),
        waits: Arc::new(()),
    });
    let rules = Arc::new(FixedRules(Arc::new(Policy {
        unattended: Some(UnattendedPolicy::Webhook {
            after_ms,
            url: "https://example.com/hook".to_owned(),
            token_env: Some("TOKEN".to_owned()),
        }),
        ..Policy::default()
    })));
    let script: &[&[ScriptLine]] = &[
        &[ScriptLine::Calls("do", call)],
        &[ScriptLine::Says("done")],
    ];
    let stage = stage_asking(script, rules, far.clone()).await;
    let asked = order(&stage.thread, turn("t1", "hi")).await;
    asked.expect("a turn");
    let me = stage.me.clone();
    (far, stage, me)
}

async fn settled(stage: &GateHarness) -> Option<Resolution> {
    let runs = |thread: &raddle_core::Thread| thread.turn().is_some();
    while stage.thread.inspect(runs).await.expect("a thread") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let events = stage.events().await.into_iter();
    let mut settled = events.filter_map(|event| match event {
        Event::RequestResolved(it) => Some(it.resolution),
        _ => None,
    });
    settled.next()
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_an_answer() {
    for (says, ran) in [(WebhookDecision::Accept, 1), (WebhookDecision::Decline, 0)] {
        let (far, mut stage, me) = asking(Some(Ok(says)), 60_000).await;
        until(&mut stage.hears, "ask").await;
        stage.threads.unsubscribe(stage.id, me).await;
        let settled = settled(&stage).await;
        let found = settled.and_then(|it| match it {
            Resolution::Answered { by, .. } => Some(by),
            _ => None,
        });
        assert_eq!(found.as_deref(), Some("webhook"));
        assert_eq!(stage.bench.ran().len(), ran);
        let heard = far.heard.lock().expect("heard");
        let [put] = &heard[..] else {
            panic!("it was put {} times", heard.len());
        };
        assert_eq!(put.url, "https://example.com/hook");
        assert_eq!(put.token_env.as_deref(), Some("TOKEN"));
        assert_eq!(put.within, Duration::from_secs(60));
        let question = &put.question;
        assert_eq!(question["id"], format!("{}:0", stage.id));
        assert_eq!(question["method"], "item/commandExecution/requestApproval");
        assert_eq!(question["deadlineMs"], 1_060_000);
        assert_eq!(question["paths"], json!([]));
        let params = &question["params"];
        assert_eq!(params["threadId"], stage.id.to_string());
        assert_eq!(params["turnId"], "t1");
        assert_eq!(params["itemId"], question["itemId"]);
        assert_eq!(params["command"], "prints");
        assert_eq!(params["reason"], "It goes beyond the sandbox.");
    }
}

#[tokio::test(start_paused = true)]
async fn the_target_of_a_move_is_among_the_paths() {
    let says = Some(Ok(WebhookDecision::Decline));
    let (far, mut stage, me) = asking_about("beyond writes moved", says, 60_000).await;
    until(&mut stage.hears, "ask").await;
    stage.threads.unsubscribe(stage.id, me).await;
    settled(&stage).await;
    let heard = far.heard.lock().expect("heard");
    let question = &heard[0].question;
    assert_eq!(question["method"], "item/fileChange/requestApproval");
    assert_eq!(question["paths"], json!(["/w/a", "/home/b", "/w/c"]));
}

/// What is no decision leaves the question open, until its deadline makes it a no.
#[tokio::test(start_paused = true)]
async fn trouble_far_away_decides_nothing() {
    let (far, mut stage, me) = asking(Some(Err("it is gone".to_owned())), 60_000).await;
    until(&mut stage.hears, "ask").await;
    stage.threads.unsubscribe(stage.id, me).await;
    far.hears.notified().await;
    while Arc::strong_count(&far.waits) > 1 {
        tokio::task::yield_now().await;
    }
    let open = |thread: &raddle_core::Thread| {
        let open = thread.requests().map(|(_, open)| open.expires_at);
        open.collect::<Vec<_>>()
    };
    let deadlines = stage.thread.inspect(open).await;
    assert_eq!(deadlines, Ok(vec![Some(raddle_core::Timestamp(1_060_000))]));
    assert_eq!(stage.bench.ran().len(), 0);
    assert_eq!(far.heard.lock().expect("heard").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_put_far_away_while_somebody_is_there() {
    let (far, mut stage, me) = asking(None, 60_000).await;
    until(&mut stage.hears, "ask").await;
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    assert_eq!(far.heard.lock().expect("heard").len(), 0);
    stage.threads.unsubscribe(stage.id, me).await;
    far.hears.notified().await;
    // Whoever comes back is asked, and nobody far away is waited for.
    let (me, mut hears) = client();
    subscribe(&stage.thread, me).await;
    until(&mut hears, "ask").await;
    while Arc::strong_count(&far.waits) > 1 {
        tokio::task::yield_now().await;
    }
    stage.answer(0, raddle_core::RequestAnswer::Accept {}).await;
    until(&mut hears, "turn/completed").await;
    assert_eq!(stage.bench.ran().len(), 1);
}
