//! Tools that a client runs, and clients that are not there.

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
use crate::{client, journal, order, started, subscribe, threads_with, turn, until};

const LOOK: &[ScriptLine] = &[ScriptLine::Calls("look", "{}")];
const DONE: &[ScriptLine] = &[ScriptLine::Says("done")];

/// What the model reads of a tool that nobody ran.
const GIVEN_UP: &str = "user hi · call look · output No answer could be had: for 300s no client was there that could \
                        run this tool";

fn rules(unattended: UnattendedPolicy) -> Arc<dyn Rulebook> {
    Arc::new(FixedRules(Arc::new(Policy {
        unattended: Some(unattended),
        ..Policy::default()
    })))
}

fn every(after_ms: u64) -> [UnattendedPolicy; 3] {
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

/// A thread whose client was just asked to run its tool.
struct ClientToolHarness {
    journal: Arc<dyn Journal>,
    threads: Threads,
    script: Arc<ScriptedAnswers>,
    thread: Handle,
    id: ThreadId,
    me: Arc<dyn Subscriber>,
    hears: mpsc::UnboundedReceiver<String>,
}

async fn asked(unattended: UnattendedPolicy) -> ClientToolHarness {
    let mut stage = begun(&[LOOK, DONE], rules(unattended)).await;
    until(&mut stage.hears, "ask item/tool/call").await;
    stage
}

/// A thread with tools of a client's, in which a turn has begun.
async fn begun(script: &[&[ScriptLine]], rules: Arc<dyn Rulebook>) -> ClientToolHarness {
    let journal = journal();
    let tools = Arc::new(raddle_agent::NoTools);
    let (threads, script) = threads_with(&journal, script, tools, rules);
    let (me, hears) = client();
    let id = ThreadId::mint();
    let mut start = started(id);
    let look = json!({"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}});
    let group =
        json!({"type": "namespace", "name": "far", "description": "Far away.", "tools": [look]});
    start.settings.client_tools = vec![look, group];
    let (reply, answer) = oneshot::channel();
    let thread = threads.start(start, me.clone(), |it| drop(reply.send(it)));
    answer.await.expect("an answer").expect("a thread");
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    ClientToolHarness {
        journal,
        threads,
        script,
        thread,
        id,
        me,
        hears,
    }
}

/// What the tool gives.
fn seen() -> RequestAnswer {
    RequestAnswer::Tool {
        output: Output::text("seen"),
        content: json!([]),
    }
}

impl ClientToolHarness {
    /// The client goes.
    async fn goes(&self) {
        self.threads.unsubscribe(self.id, self.me.clone()).await;
    }

    /// A client comes, and is asked again.
    async fn comes(&mut self) {
        let (me, mut hears) = client();
        subscribe(&self.thread, me.clone()).await;
        until(&mut hears, "ask item/tool/call").await;
        (self.me, self.hears) = (me, hears);
    }

    async fn answers(&mut self) {
        self.says(0, seen()).await;
        until(&mut self.hears, "turn/completed").await;
    }

    async fn says(&self, request: u64, answer: RequestAnswer) {
        let answer = AnswerRequest {
            request: RequestNumber(request),
            by: "ann".to_owned(),
            answer,
        };
        let answer = Command::AnswerRequest(Box::new(answer));
        order(&self.thread, answer).await.expect("in time");
    }

    fn read(&self) -> Option<String> {
        self.script.prompts().get(1).cloned()
    }

    /// The turn ends although nobody hears it.
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
async fn a_tool_that_nobody_is_there_to_run_is_given_up_in_time() {
    for unattended in every(300_000) {
        let stage = asked(unattended.clone()).await;
        let left = Instant::now();
        stage.goes().await;
        stage.ends().await;
        let took = left.elapsed().as_secs();
        assert!((300..=301).contains(&took), "{unattended:?}: {took}");
        assert_eq!(stage.read().as_deref(), Some(GIVEN_UP), "{unattended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_tool_waits_and_whoever_comes_is_asked() {
    let mut stage = asked(UnattendedPolicy::Park).await;
    stage.goes().await;
    tokio::time::sleep(Duration::from_secs(1_000_000)).await;
    stage.comes().await;
    stage.answers().await;
    let read = "user hi · call look · output seen";
    assert_eq!(stage.read().as_deref(), Some(read));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_there_may_take_its_time() {
    for unattended in every(300_000) {
        let mut stage = asked(unattended).await;
        tokio::time::sleep(Duration::from_secs(1_000_000)).await;
        stage.answers().await;
        let read = "user hi · call look · output seen";
        assert_eq!(stage.read().as_deref(), Some(read));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_is_asked_again_and_waited_for() {
    for unattended in every(300_000) {
        let mut stage = asked(unattended).await;
        for _ in 0..3 {
            stage.goes().await;
            tokio::time::sleep(Duration::from_secs(299)).await;
            stage.comes().await;
            tokio::time::sleep(Duration::from_secs(299)).await;
        }
        stage.answers().await;
        let read = "user hi · call look · output seen";
        assert_eq!(stage.read().as_deref(), Some(read));
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_run_a_tool_is_not_waited_for_once_the_others_are_gone() {
    let stage = asked(UnattendedPolicy::Deny { after_ms: 300_000 }).await;
    let (other, mut hears) = client();
    subscribe(&stage.thread, other.clone()).await;
    until(&mut hears, "ask item/tool/call").await;
    let nobody = stage.thread.cannot(RequestNumber(0), other).await;
    assert_eq!(nobody, Ok(false), "the first may");
    stage.goes().await;
    until(&mut hears, "turn/completed").await;
    assert_eq!(stage.read().as_deref(), Some(GIVEN_UP));
}

/// Hears everything and may answer nothing.
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
async fn who_only_looks_is_nobody_who_could_run_a_tool() {
    let stage = asked(UnattendedPolicy::Deny { after_ms: 300_000 }).await;
    subscribe(&stage.thread, Arc::new(ReadOnlySubscriber)).await;
    stage.goes().await;
    stage.ends().await;
    assert_eq!(stage.read().as_deref(), Some(GIVEN_UP));
}

#[tokio::test(start_paused = true)]
async fn a_new_owner_waits_for_a_client_as_the_old_one_did() {
    for (unattended, is_given_up) in [
        (UnattendedPolicy::Deny { after_ms: 300_000 }, true),
        (UnattendedPolicy::Park, false),
    ] {
        let mut stage = asked(unattended.clone()).await;
        // The first owner is gone without a word.
        let tools = Arc::new(raddle_agent::NoTools);
        let (second, script) = threads_with(&stage.journal, &[DONE], tools, rules(unattended));
        stage.thread = second.get(stage.id).await.expect("the thread");
        stage.script = script;
        match is_given_up {
            true => stage.ends().await,
            false => {
                tokio::time::sleep(Duration::from_secs(1_000_000)).await;
                stage.comes().await;
                stage.answers().await;
            }
        }
        let read = match is_given_up {
            true => GIVEN_UP,
            false => "user hi · call look · output seen",
        };
        assert_eq!(stage.script.prompts(), [read]);
    }
}

/// Rules about tools by their names.
fn named(tools: &[(&str, Verdict)], unattended: UnattendedPolicy) -> Arc<dyn Rulebook> {
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
async fn rules_are_about_tools_by_their_names() {
    let far: &[ScriptLine] = &[ScriptLine::Calls("far__look", "{}")];
    let (allow, ask, deny) = (Verdict::Allow, Verdict::Ask, Verdict::Deny);
    for (rules, call, wanted) in [
        (&[][..], LOOK, allow),
        (&[("look", deny)], LOOK, deny),
        (&[("look", deny)], far, allow),
        (&[("far.*", deny)], far, deny),
        (&[("far.*", deny)], LOOK, allow),
        (&[("far.look", ask)], far, ask),
        (&[("*", ask), ("look", allow)], LOOK, ask),
        (&[("*", ask), ("l*k", deny)], LOOK, deny),
    ] {
        let mut stage = begun(&[call, DONE], named(rules, UnattendedPolicy::Park)).await;
        match wanted {
            Verdict::Allow => {
                until(&mut stage.hears, "ask item/tool/call").await;
                stage.answers().await;
            }
            Verdict::Ask => {
                let heard = until(&mut stage.hears, "ask").await;
                assert!(heard.ends_with(&["ask item/tool/requestUserInput".to_owned()]));
                stage.says(0, RequestAnswer::Accept {}).await;
                until(&mut stage.hears, "ask item/tool/call").await;
                stage.says(1, seen()).await;
                until(&mut stage.hears, "turn/completed").await;
            }
            Verdict::Deny => {
                let heard = until(&mut stage.hears, "turn/completed").await;
                let is_question = |it: &String| it.starts_with("ask");
                assert!(!heard.iter().any(is_question), "{rules:?}: {heard:?}");
            }
        }
        let read = stage.read().expect("a second call");
        let is_denied =
            read.contains("because a rule forbids it (tool ") && read.contains("So it is written.");
        assert_eq!(is_denied, wanted == deny, "{rules:?}: {read}");
        assert_eq!(
            read.ends_with("output seen"),
            !is_denied,
            "{rules:?}: {read}"
        );
    }
}

#[tokio::test]
async fn a_yes_for_the_session_is_good_for_the_same_call_of_a_tool() {
    let other: &[ScriptLine] = &[ScriptLine::Calls("look", r#"{"at": 1}"#)];
    let rules = named(&[("look", Verdict::Ask)], UnattendedPolicy::Park);
    let mut stage = begun(&[LOOK, LOOK, other, DONE], rules).await;
    until(&mut stage.hears, "ask item/tool/requestUserInput").await;
    stage.says(0, RequestAnswer::AcceptForSession {}).await;
    for request in [1, 2] {
        until(&mut stage.hears, "ask item/tool/call").await;
        stage.says(request, seen()).await;
    }
    // Something else, which is asked about.
    until(&mut stage.hears, "ask item/tool/requestUserInput").await;
    stage.says(3, RequestAnswer::Decline {}).await;
    until(&mut stage.hears, "turn/completed").await;
}

/// A rule wants someone to see it, so nobody's silence is a yes.
#[tokio::test]
async fn silence_about_a_tool_is_a_no() {
    for unattended in every(0) {
        let rules = named(&[("look", Verdict::Ask)], unattended);
        let mut stage = begun(&[LOOK, DONE], rules).await;
        until(&mut stage.hears, "turn/completed").await;
        assert_eq!(
            stage.read().as_deref(),
            Some(
                "user hi · call look · output Nobody answered in time whether this may run, so it was not."
            )
        );
    }
}
