//! Questions that a running tool asks the user.

use raddle_agent::Options;
use raddle_core::ports::{
    NoPlugins, NotApproved, PluginRequest, PluginRequestError, PluginSkill, PluginSnapshot, Plugins,
};
use raddle_core::{ApprovalPolicy, Refusal};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::*;
use crate::{options, started};

const CALL: &[ScriptLine] = &[ScriptLine::Calls("do", "elicits")];
const ASK: &str = "ask mcpServer/elicitation/request";

fn accepted() -> RequestAnswer {
    RequestAnswer::Elicitation {
        body: json!({"action": "accept"}),
    }
}

/// Starts a turn whose call asks the user.
async fn asking_harness() -> GateHarness {
    let mut harness = harness(&[CALL, DONE]).await;
    let result = execute(&harness.thread, turn("t1", "hi")).await;
    result.expect("a turn");
    until(&mut harness.deliveries, ASK).await;
    harness
}

async fn resolutions(harness: &GateHarness) -> Vec<Resolution> {
    let events = harness.events().await.into_iter();
    let resolutions = events.filter_map(|event| match event {
        Event::RequestResolved(it) => Some(it.resolution),
        _ => None,
    });
    resolutions.collect()
}

#[tokio::test]
async fn the_first_answer_reaches_the_tool() {
    let mut harness = asking_harness().await;
    // A client that joins receives the question again.
    let (me, mut deliveries) = client();
    subscribe(&harness.thread, me).await;
    until(&mut deliveries, ASK).await;
    harness.answer(0, accepted()).await;
    let second = AnswerRequest {
        request: RequestNumber(0),
        by: "bob".to_owned(),
        answer: accepted(),
    };
    let second = execute(&harness.thread, Command::AnswerRequest(Box::new(second))).await;
    let is_refused = matches!(
        second,
        Err(AgentError::Refused(Refusal::AlreadyResolved { .. }))
    );
    assert!(is_refused, "{second:?}");
    until(&mut harness.deliveries, "turn/completed").await;
    let read = r#"user hi · call do · output did elicits: accepted {"action":"accept"}"#;
    assert_eq!(harness.script.prompts()[1], read);
}

#[tokio::test]
async fn an_interrupt_withdraws_the_question() {
    let mut harness = asking_harness().await;
    execute(&harness.thread, interrupt()).await.expect("an end");
    until(&mut harness.deliveries, "turn/completed").await;
    assert_eq!(resolutions(&harness).await, [Resolution::Withdrawn {}]);
    let ends = harness.ends().await;
    assert_eq!(ends[0].0, ItemStatus::Interrupted);
}

/// The clients stop showing the question while the tool runs on.
#[tokio::test]
async fn a_tool_that_needs_no_answer_any_more_withdraws_the_question() {
    let mut harness = asking_harness().await;
    harness.tools.go.notify_one();
    until(&mut harness.deliveries, "serverRequest/resolved").await;
    assert_eq!(resolutions(&harness).await, [Resolution::Withdrawn {}]);
    assert!(harness.ends().await.is_empty());
    harness.tools.go.notify_one();
    until(&mut harness.deliveries, "turn/completed").await;
    let read = "user hi · call do · output did elicits: gave up";
    assert_eq!(harness.script.prompts()[1], read);
}

#[tokio::test]
async fn settings_that_forbid_asking_decline_the_question() {
    let granular = json!({"sandbox_approval": true, "rules": true, "mcp_elicitations": false});
    for approval in [ApprovalPolicy::Never, ApprovalPolicy::Granular(granular)] {
        let (journal, tools) = (journal(), Arc::new(TestTools::default()));
        let rules = Arc::new(FixedRules::default());
        let (threads, script) = threads_with(&journal, &[CALL, DONE], tools, rules);
        let (me, mut deliveries) = client();
        let mut start = started(ThreadId::mint());
        start.settings.approval = approval;
        let (reply, answer) = oneshot::channel();
        let thread = threads.start(start, me, |it| drop(reply.send(it)));
        answer.await.expect("an answer").expect("a thread");
        execute(&thread, turn("t1", "hi")).await.expect("a turn");
        let received = until(&mut deliveries, "turn/completed").await;
        assert!(!received.iter().any(|it| it == ASK), "{received:?}");
        let read = "user hi · call do · output did elicits: declined by policy";
        assert_eq!(script.prompts()[1], read);
    }
}

/// The question is lost with its tool; the call that the model repeats asks again.
#[tokio::test]
async fn a_new_owner_asks_again_when_the_call_is_repeated() {
    let mut harness = asking_harness().await;
    let rules = Arc::new(FixedRules::default());
    let tools = harness.tools.clone();
    let (second, script) = threads_with(&harness.journal, &[CALL, DONE], tools, rules);
    let thread = second.get(harness.id).await.expect("the thread");
    let (me, mut deliveries) = client();
    subscribe(&thread, me).await;
    until(&mut deliveries, ASK).await;
    harness.thread = thread;
    harness.answer(1, accepted()).await;
    until(&mut deliveries, "turn/completed").await;
    let prompts = script.prompts();
    let lost = "output This call was asking the user a question when the server ended";
    assert!(prompts[0].contains(lost), "{prompts:?}");
    assert!(prompts[1].contains("did elicits: accepted"), "{prompts:?}");
    assert_eq!(resolutions(&harness).await[0], Resolution::Withdrawn {});
}

const CALL_OF_PLUGIN: &[ScriptLine] = &[ScriptLine::Calls("do", "asks-permission")];

/// Plugins that note the stored approvals.
#[derive(Debug, Default)]
struct ApprovedPlugins(Mutex<Vec<String>>, Notify);

impl Plugins for ApprovedPlugins {
    fn approve<'a>(
        &'a self,
        ask: &'a AskElicitation,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), NotApproved>> {
        let permission = ask.permission.as_ref().map(|it| &*it.name);
        let approval = format!("{} {} by {by}", ask.server, permission.unwrap_or_default());
        self.0.lock().expect("approvals").push(approval);
        self.1.notify_one();
        Box::pin(std::future::ready(Ok(())))
    }

    fn snapshots(&self) -> BoxFuture<'_, Vec<PluginSnapshot>> {
        NoPlugins.snapshots()
    }

    fn reload(&self) -> BoxFuture<'_, ()> {
        NoPlugins.reload()
    }

    fn forget<'a>(&'a self, plugin: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move { NoPlugins.forget(plugin).await })
    }

    fn skills(&self) -> Vec<PluginSkill> {
        Vec::new()
    }

    fn skill_text(&self, _: &str) -> Option<String> {
        None
    }

    fn rule_names<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn call(&self, call: PluginRequest) -> BoxFuture<'_, Result<Value, PluginRequestError>> {
        Box::pin(async move { NoPlugins.call(call).await })
    }
}

/// Starts a turn whose call asks for a permission of a plugin, and a second owner with this script.
async fn second_owner(script: &[&[ScriptLine]]) -> (GateHarness, Arc<ApprovedPlugins>) {
    let mut harness = harness(&[CALL_OF_PLUGIN, DONE]).await;
    let result = execute(&harness.thread, turn("t1", "hi")).await;
    result.expect("a turn");
    until(&mut harness.deliveries, ASK).await;
    let plugins = Arc::new(ApprovedPlugins::default());
    harness.script = Arc::new(ScriptedAnswers::new(script));
    harness.tools = Arc::default();
    let options = Options {
        tools: harness.tools.clone(),
        plugins: plugins.clone(),
        ..options(&harness.journal, harness.script.clone())
    };
    harness.threads = Threads::new(options);
    harness.thread = harness.threads.get(harness.id).await.expect("the thread");
    let (me, deliveries) = client();
    subscribe(&harness.thread, me).await;
    harness.deliveries = deliveries;
    until(&mut harness.deliveries, ASK).await;
    (harness, plugins)
}

/// The repeated call waits for the answer to the question of the lost one.
#[tokio::test]
async fn a_permission_is_asked_once_although_the_owner_dies() {
    let call = &[ScriptLine::Calls("do", "asks-permission")];
    let (mut harness, plugins) = second_owner(&[call, DONE]).await;
    // The answer may come before the call asks, or after.
    harness.tools.started.notified().await;
    harness.answer(0, accepted()).await;
    let received = until(&mut harness.deliveries, "turn/completed").await;
    assert!(!received.iter().any(|it| it == ASK), "{received:?}");
    let prompts = harness.script.prompts();
    let lost = "output This call was lost when the server ended. It was asking the user";
    assert!(prompts[0].contains(lost), "{prompts:?}");
    let done = r#"output did asks-permission: accepted {"action":"accept"}"#;
    assert!(prompts[1].ends_with(done), "{prompts:?}");
    assert_eq!(resolutions(&harness).await.len(), 1);
    // A call that waits stores the approval itself.
    assert!(plugins.0.lock().expect("approvals").len() <= 1);
}

/// The answer comes before the repeated call asks.
#[tokio::test]
async fn a_permission_that_was_given_is_not_asked_for_again() {
    let waits = &[ScriptLine::Calls("do", "waits")];
    let call = &[ScriptLine::Calls("do", "asks-permission")];
    let (mut harness, plugins) = second_owner(&[waits, call, DONE]).await;
    harness.answer(0, accepted()).await;
    plugins.1.notified().await;
    harness.tools.go.notify_one();
    let received = until(&mut harness.deliveries, "turn/completed").await;
    assert!(!received.iter().any(|it| it == ASK), "{received:?}");
    let done = r#"output did asks-permission: accepted {"action":"accept"}"#;
    assert!(harness.script.prompts()[2].ends_with(done));
}

/// Without a repeated call, the approval is stored for later calls.
#[tokio::test]
async fn a_permission_is_stored_although_its_call_is_lost() {
    let waits = &[ScriptLine::Calls("do", "waits")];
    let (mut harness, plugins) = second_owner(&[waits, DONE]).await;
    harness.answer(0, accepted()).await;
    plugins.1.notified().await;
    let approvals = plugins.0.lock().expect("approvals").clone();
    assert_eq!(approvals, ["s workspace.read by ann"]);
    harness.tools.go.notify_one();
    until(&mut harness.deliveries, "turn/completed").await;
}
