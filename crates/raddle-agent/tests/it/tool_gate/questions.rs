//! Questions that a running tool asks the user.

use raddle_core::{ApprovalPolicy, Refusal};
use serde_json::json;
use tokio::sync::oneshot;

use super::*;
use crate::started;

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
