//! Tools that a client runs, and clients that are absent.

use std::sync::Arc;
use std::time::Duration;

use raddle_agent::{FixedRules, Handle, Subscriber, Threads};
use raddle_core::policy::{Layer, Policy, Rule, Subject, UnattendedPolicy, Verdict};
use raddle_core::ports::{Journal, Rulebook};
use raddle_core::{AnswerRequest, Command, Output, RequestAnswer, RequestNumber, ThreadId};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::script::{ScriptLine, ScriptedAnswers};
use crate::{client, execute, journal, started, subscribe, threads_with, turn, until};

const LOOK: &[ScriptLine] = &[ScriptLine::Calls("look", "{}")];
const DONE: &[ScriptLine] = &[ScriptLine::Says("done")];

/// The prompt after a tool call that timed out.
const TIMED_OUT: &str = "user hi · call look · output The request failed: for 300s no client was there that could \
                        run this tool";

fn rules(unattended: UnattendedPolicy) -> Arc<dyn Rulebook> {
    Arc::new(FixedRules(Arc::new(Policy {
        unattended: Some(unattended),
        ..Policy::default()
    })))
}

fn unattended_policies(after_ms: u64) -> [UnattendedPolicy; 3] {
    let url = "https://example.com".to_owned();
    [
        UnattendedPolicy::Deny { after_ms },
        UnattendedPolicy::Allow { after_ms },
        UnattendedPolicy::Webhook {
            after_ms,
            url,
            token_env: None,
        },
    ]
}

/// A thread with a pending tool call of its client.
struct ClientToolHarness {
    journal: Arc<dyn Journal>,
    threads: Threads,
    script: Arc<ScriptedAnswers>,
    thread: Handle,
    id: ThreadId,
    me: Arc<dyn Subscriber>,
    deliveries: mpsc::UnboundedReceiver<String>,
}

async fn start_tool_call(unattended: UnattendedPolicy) -> ClientToolHarness {
    let mut harness = start_turn(&[LOOK, DONE], rules(unattended)).await;
    until(&mut harness.deliveries, "ask item/tool/call").await;
    harness
}

/// Starts a thread with tools of a client, and a turn in it.
async fn start_turn(script: &[&[ScriptLine]], rules: Arc<dyn Rulebook>) -> ClientToolHarness {
    let journal = journal();
    let tools = Arc::new(raddle_agent::NoTools);
    let (threads, script) = threads_with(&journal, script, tools, rules);
    let (me, deliveries) = client();
    let id = ThreadId::mint();
    let mut start = started(id);
    let look = json!({"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}});
    let group =
        json!({"type": "namespace", "name": "far", "description": "Far away.", "tools": [look]});
    start.settings.client_tools = vec![look, group];
    let (reply, answer) = oneshot::channel();
    let thread = threads.start(start, me.clone(), |it| drop(reply.send(it)));
    answer.await.expect("an answer").expect("a thread");
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    ClientToolHarness {
        journal,
        threads,
        script,
        thread,
        id,
        me,
        deliveries,
    }
}

/// The result of the tool.
fn tool_answer() -> RequestAnswer {
    RequestAnswer::Tool {
        output: Output::text("seen"),
        content: json!([]),
    }
}

impl ClientToolHarness {
    /// The client unsubscribes.
    async fn unsubscribe(&self) {
        self.threads.unsubscribe(self.id, self.me.clone()).await;
    }

    /// A client subscribes, and receives the request again.
    async fn resubscribe(&mut self) {
        let (me, mut deliveries) = client();
        subscribe(&self.thread, me.clone()).await;
        until(&mut deliveries, "ask item/tool/call").await;
        (self.me, self.deliveries) = (me, deliveries);
    }

    async fn finish_turn(&mut self) {
        self.answer(0, tool_answer()).await;
        until(&mut self.deliveries, "turn/completed").await;
    }

    async fn answer(&self, request: u64, answer: RequestAnswer) {
        let answer = AnswerRequest {
            request: RequestNumber(request),
            by: "ann".to_owned(),
            answer,
        };
        let answer = Command::AnswerRequest(Box::new(answer));
        execute(&self.thread, answer).await.expect("in time");
    }

    fn read(&self) -> Option<String> {
        self.script.prompts().get(1).cloned()
    }

    /// Waits until the turn ends, without a subscriber.
    async fn ends(&self) {
        let watch = async {
            let runs = |thread: &raddle_core::Thread| thread.turn().is_some();
            while self.thread.inspect(runs).await.expect("a thread") {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        watch.await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_times_out_without_a_client() {
    for unattended in unattended_policies(300_000) {
        let harness = start_tool_call(unattended.clone()).await;
        let left_at = Instant::now();
        harness.unsubscribe().await;
        harness.ends().await;
        let elapsed = left_at.elapsed().as_secs();
        assert!((300..=301).contains(&elapsed), "{unattended:?}: {elapsed}");
        assert_eq!(harness.read().as_deref(), Some(TIMED_OUT), "{unattended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_tool_call_waits_for_the_next_client() {
    let mut harness = start_tool_call(UnattendedPolicy::Park).await;
    harness.unsubscribe().await;
    tokio::time::sleep(Duration::from_secs(1_000_000)).await;
    harness.resubscribe().await;
    harness.finish_turn().await;
    let read = "user hi · call look · output seen";
    assert_eq!(harness.read().as_deref(), Some(read));
}

#[tokio::test(start_paused = true)]
async fn an_attached_client_has_no_timeout() {
    for unattended in unattended_policies(300_000) {
        let mut harness = start_tool_call(unattended).await;
        tokio::time::sleep(Duration::from_secs(1_000_000)).await;
        harness.finish_turn().await;
        let read = "user hi · call look · output seen";
        assert_eq!(harness.read().as_deref(), Some(read));
    }
}

#[tokio::test(start_paused = true)]
async fn a_returning_client_receives_the_request_again_without_timeout() {
    for unattended in unattended_policies(300_000) {
        let mut harness = start_tool_call(unattended).await;
        for _ in 0..3 {
            harness.unsubscribe().await;
            tokio::time::sleep(Duration::from_secs(299)).await;
            harness.resubscribe().await;
            tokio::time::sleep(Duration::from_secs(299)).await;
        }
        harness.finish_turn().await;
        let read = "user hi · call look · output seen";
        assert_eq!(harness.read().as_deref(), Some(read));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_run_the_tool_does_not_stop_the_timeout() {
    let harness = start_tool_call(UnattendedPolicy::Deny { after_ms: 300_000 }).await;
    let (other, mut deliveries) = client();
    subscribe(&harness.thread, other.clone()).await;
    until(&mut deliveries, "ask item/tool/call").await;
    let none_left = harness
        .thread
        .note_cannot_answer(RequestNumber(0), other)
        .await;
    assert_eq!(none_left, Ok(false), "the first may");
    harness.unsubscribe().await;
    until(&mut deliveries, "turn/completed").await;
    assert_eq!(harness.read().as_deref(), Some(TIMED_OUT));
}

/// Receives everything and may answer nothing.
struct ReadOnlySubscriber;

impl raddle_agent::Subscriber for ReadOnlySubscriber {
    fn deliver(&self, _: &raddle_agent::Delivery) -> bool {
        true
    }

    fn is_connected(&self) -> bool {
        true
    }

    fn can_answer(&self) -> bool {
        false
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_does_not_stop_the_timeout() {
    let harness = start_tool_call(UnattendedPolicy::Deny { after_ms: 300_000 }).await;
    subscribe(&harness.thread, Arc::new(ReadOnlySubscriber)).await;
    harness.unsubscribe().await;
    harness.ends().await;
    assert_eq!(harness.read().as_deref(), Some(TIMED_OUT));
}

#[tokio::test(start_paused = true)]
async fn a_new_owner_waits_for_a_client_as_the_old_one_did() {
    for (unattended, is_given_up) in [
        (UnattendedPolicy::Deny { after_ms: 300_000 }, true),
        (UnattendedPolicy::Park, false),
    ] {
        let mut harness = start_tool_call(unattended.clone()).await;
        // The first owner has crashed.
        let tools = Arc::new(raddle_agent::NoTools);
        let (second, script) = threads_with(&harness.journal, &[DONE], tools, rules(unattended));
        harness.thread = second.get(harness.id).await.expect("the thread");
        harness.script = script;
        match is_given_up {
            true => harness.ends().await,
            false => {
                tokio::time::sleep(Duration::from_secs(1_000_000)).await;
                harness.resubscribe().await;
                harness.finish_turn().await;
            }
        }
        let read = match is_given_up {
            true => TIMED_OUT,
            false => "user hi · call look · output seen",
        };
        assert_eq!(harness.script.prompts(), [read]);
    }
}

/// Rules about tools by name.
fn rules_by_name(tools: &[(&str, Verdict)], unattended: UnattendedPolicy) -> Arc<dyn Rulebook> {
    let rules = tools.iter().map(|(name, verdict)| Rule {
        layer: Layer::User,
        subject: Subject::Tool((*name).to_owned()),
        verdict: *verdict,
        beyond: false,
        reason: Some("So it is written.".to_owned()),
    });
    Arc::new(FixedRules(Arc::new(Policy {
        rules: rules.collect(),
        unattended: Some(unattended),
        ..Policy::default()
    })))
}

#[tokio::test]
async fn rules_match_tools_by_name() {
    let far: &[ScriptLine] = &[ScriptLine::Calls("far__look", "{}")];
    let (allow, ask, deny) = (Verdict::Allow, Verdict::Ask, Verdict::Deny);
    for (rules, call, expected) in [
        (&[][..], LOOK, allow),
        (&[("look", deny)], LOOK, deny),
        (&[("look", deny)], far, allow),
        (&[("far.*", deny)], far, deny),
        (&[("far.*", deny)], LOOK, allow),
        (&[("far.look", ask)], far, ask),
        (&[("*", ask), ("look", allow)], LOOK, ask),
        (&[("*", ask), ("l*k", deny)], LOOK, deny),
    ] {
        let mut harness =
            start_turn(&[call, DONE], rules_by_name(rules, UnattendedPolicy::Park)).await;
        match expected {
            Verdict::Allow => {
                until(&mut harness.deliveries, "ask item/tool/call").await;
                harness.finish_turn().await;
            }
            Verdict::Ask => {
                let received = until(&mut harness.deliveries, "ask").await;
                assert!(received.ends_with(&["ask item/tool/requestUserInput".to_owned()]));
                harness.answer(0, RequestAnswer::Accept {}).await;
                until(&mut harness.deliveries, "ask item/tool/call").await;
                harness.answer(1, tool_answer()).await;
                until(&mut harness.deliveries, "turn/completed").await;
            }
            Verdict::Deny => {
                let received = until(&mut harness.deliveries, "turn/completed").await;
                let is_question = |it: &String| it.starts_with("ask");
                assert!(!received.iter().any(is_question), "{rules:?}: {received:?}");
            }
        }
        let read = harness.read().expect("a second call");
        let is_denied =
            read.contains("because a rule forbids it (tool ") && read.contains("So it is written.");
        assert_eq!(is_denied, expected == deny, "{rules:?}: {read}");
        assert_eq!(
            read.ends_with("output seen"),
            !is_denied,
            "{rules:?}: {read}"
        );
    }
}

#[tokio::test]
async fn an_approval_for_the_session_covers_the_same_call() {
    let other: &[ScriptLine] = &[ScriptLine::Calls("look", r#"{"at": 1}"#)];
    let rules = rules_by_name(&[("look", Verdict::Ask)], UnattendedPolicy::Park);
    let mut harness = start_turn(&[LOOK, LOOK, other, DONE], rules).await;
    until(&mut harness.deliveries, "ask item/tool/requestUserInput").await;
    harness.answer(0, RequestAnswer::AcceptForSession {}).await;
    for request in [1, 2] {
        until(&mut harness.deliveries, "ask item/tool/call").await;
        harness.answer(request, tool_answer()).await;
    }
    // A different call needs a new approval.
    until(&mut harness.deliveries, "ask item/tool/requestUserInput").await;
    harness.answer(3, RequestAnswer::Decline {}).await;
    until(&mut harness.deliveries, "turn/completed").await;
}

/// The rule requires an explicit approval, so a timeout never approves.
#[tokio::test]
async fn an_unanswered_approval_of_a_tool_is_declined() {
    for unattended in unattended_policies(0) {
        let rules = rules_by_name(&[("look", Verdict::Ask)], unattended);
        let mut harness = start_turn(&[LOOK, DONE], rules).await;
        until(&mut harness.deliveries, "turn/completed").await;
        assert_eq!(
            harness.read().as_deref(),
            Some(
                "user hi · call look · output The request for approval timed out, so this was not run."
            )
        );
    }
}
