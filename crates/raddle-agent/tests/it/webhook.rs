//! Requests that are sent to a webhook while no client is attached.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use raddle_agent::FixedRules;
use raddle_core::policy::{Policy, UnattendedPolicy};
use raddle_core::ports::{BoxFuture, Webhook, WebhookDecision, WebhookError, WebhookRequest};
use raddle_core::{Event, Resolution};
use serde_json::json;
use tokio::sync::Notify;

use crate::script::ScriptLine;
use crate::tool_gate::{GateHarness, harness_with_webhook};
use crate::{client, execute, subscribe, turn, until};

/// A webhook with this response, or none ever.
struct FakeWebhook {
    response: Option<Result<WebhookDecision, WebhookError>>,
    requests: Mutex<Vec<WebhookRequest>>,
    received: Notify,
    /// Dropped with the future that waits for an answer.
    pending: Arc<()>,
}

impl Webhook for FakeWebhook {
    fn send(
        &self,
        request: WebhookRequest,
    ) -> BoxFuture<'static, Result<WebhookDecision, WebhookError>> {
        self.requests.lock().expect("a lock").push(request);
        self.received.notify_one();
        let (response, pending) = (self.response.clone(), self.pending.clone());
        Box::pin(async move {
            let _pending = pending;
            match response {
                Some(response) => response,
                None => std::future::pending().await,
            }
        })
    }
}

/// Starts a thread that requests approval of a command.
async fn request_approval(
    response: Option<Result<WebhookDecision, WebhookError>>,
    after_ms: u64,
) -> (
    Arc<FakeWebhook>,
    GateHarness,
    Arc<dyn raddle_agent::Subscriber>,
) {
    request_approval_of("beyond prints", response, after_ms).await
}

async fn request_approval_of(
    call: &'static str,
    response: Option<Result<WebhookDecision, WebhookError>>,
    after_ms: u64,
) -> (
    Arc<FakeWebhook>,
    GateHarness,
    Arc<dyn raddle_agent::Subscriber>,
) {
    let webhook = Arc::new(FakeWebhook {
        response,
        requests: Mutex::default(),
        received: Notify::new(),
        pending: Arc::new(()),
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
    let harness = harness_with_webhook(script, rules, webhook.clone()).await;
    let result = execute(&harness.thread, turn("t1", "hi")).await;
    result.expect("a turn");
    let me = harness.me.clone();
    (webhook, harness, me)
}

async fn wait_for_resolution(harness: &GateHarness) -> Option<Resolution> {
    let runs = |thread: &raddle_core::Thread| thread.turn().is_some();
    while harness.thread.inspect(runs).await.expect("a thread") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let events = harness.events().await.into_iter();
    let mut resolutions = events.filter_map(|event| match event {
        Event::RequestResolved(it) => Some(it.resolution),
        _ => None,
    });
    resolutions.next()
}

#[tokio::test(start_paused = true)]
async fn a_webhook_decision_resolves_the_request() {
    for (decision, expected_runs) in [(WebhookDecision::Accept, 1), (WebhookDecision::Decline, 0)] {
        let (webhook, mut harness, me) = request_approval(Some(Ok(decision)), 60_000).await;
        until(&mut harness.deliveries, "ask").await;
        harness.threads.unsubscribe(harness.id, me).await;
        let resolution = wait_for_resolution(&harness).await;
        let answered_by = resolution.and_then(|it| match it {
            Resolution::Answered { by, .. } => Some(by),
            _ => None,
        });
        assert_eq!(answered_by.as_deref(), Some("webhook"));
        assert_eq!(harness.tools.runs().len(), expected_runs);
        let requests = webhook.requests.lock().expect("a lock");
        let [request] = &requests[..] else {
            panic!("it was put {} times", requests.len());
        };
        assert_eq!(request.url, "https://example.com/hook");
        assert_eq!(request.token_env.as_deref(), Some("TOKEN"));
        assert_eq!(request.timeout, Duration::from_secs(60));
        let question = &request.question;
        assert_eq!(question["id"], format!("{}:0", harness.id));
        assert_eq!(question["method"], "item/commandExecution/requestApproval");
        assert_eq!(question["deadlineMs"], 1_060_000);
        assert_eq!(question["paths"], json!([]));
        let params = &question["params"];
        assert_eq!(params["threadId"], harness.id.to_string());
        assert_eq!(params["turnId"], "t1");
        assert_eq!(params["itemId"], question["itemId"]);
        assert_eq!(params["command"], "prints");
        assert_eq!(params["reason"], "It goes beyond the sandbox.");
    }
}

#[tokio::test(start_paused = true)]
async fn the_target_of_a_move_is_among_the_paths() {
    let response = Some(Ok(WebhookDecision::Decline));
    let (webhook, mut harness, me) =
        request_approval_of("beyond writes moved", response, 60_000).await;
    until(&mut harness.deliveries, "ask").await;
    harness.threads.unsubscribe(harness.id, me).await;
    wait_for_resolution(&harness).await;
    let requests = webhook.requests.lock().expect("a lock");
    let question = &requests[0].question;
    assert_eq!(question["method"], "item/fileChange/requestApproval");
    assert_eq!(question["paths"], json!(["/w/a", "/home/b", "/w/c"]));
    let reason = &question["params"]["reason"];
    assert_eq!(reason, "It goes beyond the sandbox. Files: /w/a.");
}

/// A response that is no decision leaves the request open until its deadline declines it.
#[tokio::test(start_paused = true)]
async fn a_webhook_error_leaves_the_request_open() {
    let gone = WebhookError("it is gone".to_owned());
    let (webhook, mut harness, me) = request_approval(Some(Err(gone)), 60_000).await;
    until(&mut harness.deliveries, "ask").await;
    harness.threads.unsubscribe(harness.id, me).await;
    webhook.received.notified().await;
    while Arc::strong_count(&webhook.pending) > 1 {
        tokio::task::yield_now().await;
    }
    let open = |thread: &raddle_core::Thread| {
        let open = thread.requests().map(|(_, open)| open.expires_at);
        open.collect::<Vec<_>>()
    };
    let deadlines = harness.thread.inspect(open).await;
    assert_eq!(deadlines, Ok(vec![Some(raddle_core::Timestamp(1_060_000))]));
    assert_eq!(harness.tools.runs().len(), 0);
    assert_eq!(webhook.requests.lock().expect("a lock").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_webhook_is_not_called_while_a_client_is_attached() {
    let (webhook, mut harness, me) = request_approval(None, 60_000).await;
    until(&mut harness.deliveries, "ask").await;
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    assert_eq!(webhook.requests.lock().expect("a lock").len(), 0);
    harness.threads.unsubscribe(harness.id, me).await;
    webhook.received.notified().await;
    // A returning client receives the request, and the webhook is cancelled.
    let (me, mut deliveries) = client();
    subscribe(&harness.thread, me).await;
    until(&mut deliveries, "ask").await;
    while Arc::strong_count(&webhook.pending) > 1 {
        tokio::task::yield_now().await;
    }
    harness
        .answer(0, raddle_core::RequestAnswer::Accept {})
        .await;
    until(&mut deliveries, "turn/completed").await;
    assert_eq!(harness.tools.runs().len(), 1);
}
