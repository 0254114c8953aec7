//! Server requests, and how often the handler receives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_client::protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse,
    InputTextDynamicToolCallOutputContentItem, ThreadItem, ThreadStartParams,
};
use raddle_client::{
    Client, HandlerAnswer, Options, RejectAll, RequestHandler, ServerQuestion, ThreadEvent,
    ThreadFollower,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::harness::{ClientHarness, read_turns};

/// Returns the output of a tool once it has a permit.
#[derive(Clone)]
struct GatedTool {
    calls: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
    leaves_open: bool,
}

impl GatedTool {
    fn new(leaves_open: bool) -> Self {
        Self {
            calls: Arc::default(),
            permits: Arc::new(Semaphore::new(0)),
            leaves_open,
        }
    }

    fn count(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl RequestHandler for GatedTool {
    async fn tool(&self, params: DynamicToolCallParams) -> HandlerAnswer<DynamicToolCallResponse> {
        assert_eq!(params.tool, "look");
        self.calls.fetch_add(1, Ordering::Relaxed);
        if self.leaves_open {
            return HandlerAnswer::Open;
        }
        self.permits.acquire().await.expect("open").forget();
        HandlerAnswer::Given(tool_response("a raddle"))
    }
}

fn tool_response(text: &str) -> DynamicToolCallResponse {
    let text = text.to_owned();
    let text = InputTextDynamicToolCallOutputContentItem { text };
    DynamicToolCallResponse {
        content_items: vec![DynamicToolCallOutputContentItem::InputText(text)],
        success: true,
    }
}

async fn client(harness: &ClientHarness, handler: impl RequestHandler) -> Client {
    let mut options = Options::new("it", "1");
    options.experimental = true;
    harness.client_with(options, handler).await
}

/// Starts a thread with a model that calls a tool of the client.
async fn start_tool_turn(client: &Client) -> ThreadFollower {
    let tools = json!([{"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}]);
    let params = ThreadStartParams {
        dynamic_tools: serde_json::from_value(tools).expect("tools"),
        ..ThreadStartParams::default()
    };
    let follower = client.start(params).await.expect("a thread");
    follower.say("look").await.expect("a turn");
    follower
}

async fn wait_for_question(follower: &mut ThreadFollower) {
    loop {
        match follower.next().await.expect("a question") {
            ThreadEvent::Question(open_question) => {
                assert!(
                    matches!(open_question.question, ServerQuestion::Tool(_)),
                    "{open_question:?}"
                );
                return;
            }
            ThreadEvent::Lost { why } => panic!("lost: {why}"),
            _ => {}
        }
    }
}

/// Finishes the turn. Returns the status of the call, and the tool's output as the model repeated
/// it.
async fn finish_turn(client: &Client, follower: &mut ThreadFollower) -> (String, String) {
    let turn = follower.finish().await.expect("the turn ends");
    assert_eq!(
        follower.thread().thread.turns,
        read_turns(client, follower.id()).await
    );
    assert!(follower.thread().questions.is_empty());
    let call = turn.items.iter().find_map(|item| match item {
        ThreadItem::DynamicToolCall(call) => Some(call.status.clone()),
        _ => None,
    });
    let output = follower.thread().last_message().unwrap_or_default();
    (format!("{:?}", call.expect("a call")), output.to_owned())
}

const SCRIPT: &[&str] = &["calls look {}", "heard"];

#[tokio::test]
async fn the_handler_receives_a_question_once_wherever_the_connection_is_cut() {
    for cut in 1..30 {
        let harness = ClientHarness::open(SCRIPT);
        harness.cut([cut, 4]);
        let tool = GatedTool::new(false);
        // The handler takes its time: the connection may be lost before the answer exists.
        tool.permits.add_permits(usize::from(cut % 2 == 0));
        let client = client(&harness, tool.clone()).await;
        let mut follower = start_tool_turn(&client).await;
        wait_for_question(&mut follower).await;
        tool.permits.add_permits(usize::from(cut % 2 == 1));
        let (call, output) = finish_turn(&client, &mut follower).await;
        assert_eq!(
            (call.as_str(), output.as_str()),
            ("Completed", "a raddle"),
            "cut after {cut}"
        );
        assert_eq!(tool.count(), 1, "cut after {cut}");
    }
}

#[tokio::test]
async fn an_open_question_can_be_answered_later_or_by_another_client() {
    for elsewhere in [false, true] {
        let harness = ClientHarness::open(SCRIPT);
        let tool = GatedTool::new(true);
        let client = client(&harness, tool.clone()).await;
        let mut follower = start_tool_turn(&client).await;
        wait_for_question(&mut follower).await;
        let questions = follower.thread().questions.clone();
        assert_eq!(questions.len(), 1, "{questions:?}");
        let other = crate::questions::client(&harness, GatedTool::new(true)).await;
        let mut other_follower = other.open(follower.id()).await.expect("the thread");
        wait_for_question(&mut other_follower).await;
        let answerer = if elsewhere { &other } else { &client };
        let sent = answerer
            .answer(&questions[0].id, &tool_response("two raddles"))
            .await;
        sent.expect("sent");
        let (_, output) = finish_turn(&client, &mut follower).await;
        assert_eq!(output, "two raddles");
        finish_turn(&other, &mut other_follower).await;
    }
}

#[tokio::test]
async fn two_concurrent_answers_are_sent_once() {
    // The order of the two answers is random.
    for _ in 0..16 {
        let harness = ClientHarness::open(SCRIPT);
        harness.cut([usize::MAX]);
        let tool = GatedTool::new(false);
        let client = client(&harness, tool.clone()).await;
        let mut follower = start_tool_turn(&client).await;
        wait_for_question(&mut follower).await;
        let questions = follower.thread().questions.clone();
        // No await between these yields, so the client's task finds both answers when it wakes.
        tool.permits.add_permits(1);
        let sent = client
            .answer(&questions[0].id, &tool_response("two raddles"))
            .await;
        sent.expect("sent");
        finish_turn(&client, &mut follower).await;
        assert_eq!(harness.count_requests("contentItems"), 1);
    }
}

#[tokio::test]
async fn a_reopened_thread_shows_its_open_questions() {
    for leaves_open in [true, false] {
        let harness = ClientHarness::open(SCRIPT);
        let tool = GatedTool::new(leaves_open);
        let client = client(&harness, tool.clone()).await;
        let mut follower = start_tool_turn(&client).await;
        wait_for_question(&mut follower).await;
        let thread = follower.id();
        drop(follower);
        let mut again = client.open(thread).await.expect("the thread");
        wait_for_question(&mut again).await;
        let questions = again.thread().questions.clone();
        let sent = client
            .answer(&questions[0].id, &tool_response("two raddles"))
            .await;
        sent.expect("sent");
        let (_, output) = finish_turn(&client, &mut again).await;
        assert_eq!(output, "two raddles");
        assert_eq!(tool.count(), 2);
    }
}

#[tokio::test]
async fn an_unhandled_request_is_rejected_with_a_reason() {
    let harness = ClientHarness::open(SCRIPT);
    let client = client(&harness, RejectAll).await;
    let mut follower = start_tool_turn(&client).await;
    let (call, output) = finish_turn(&client, &mut follower).await;
    assert_eq!(call, "Failed");
    assert!(
        output.ends_with("this client does not run look"),
        "{output}"
    );
}

#[tokio::test]
async fn a_client_that_cannot_answer_leaves_a_request_to_another_one() {
    for reports_later in [false, true] {
        let harness = ClientHarness::open(SCRIPT);
        let tool = GatedTool::new(false);
        let client = client(&harness, tool.clone()).await;
        let mut follower = start_tool_turn(&client).await;
        wait_for_question(&mut follower).await;
        harness.cut([usize::MAX]);
        let other = match reports_later {
            true => crate::questions::client(&harness, GatedTool::new(true)).await,
            false => crate::questions::client(&harness, RejectAll).await,
        };
        let mut other_follower = other.open(follower.id()).await.expect("the thread");
        wait_for_question(&mut other_follower).await;
        if reports_later {
            let question = &other_follower.thread().questions[0].id;
            let sent = other.cannot_answer(question, "it has no loom").await;
            sent.expect("sent");
        }
        while harness.count_requests("\"error\"") == 0 {
            read_turns(&other, follower.id()).await;
        }
        tool.permits.add_permits(1);
        let (call, output) = finish_turn(&client, &mut follower).await;
        assert_eq!((call.as_str(), output.as_str()), ("Completed", "a raddle"));
        finish_turn(&other, &mut other_follower).await;
    }
}

#[tokio::test]
async fn the_last_client_that_cannot_answer_declines() {
    let harness = ClientHarness::open(SCRIPT);
    let client = client(&harness, GatedTool::new(true)).await;
    let mut follower = start_tool_turn(&client).await;
    wait_for_question(&mut follower).await;
    let questions = follower.thread().questions.clone();
    let sent = client
        .cannot_answer(&questions[0].id, "it has no loom")
        .await;
    sent.expect("sent");
    let (call, output) = finish_turn(&client, &mut follower).await;
    assert_eq!(call, "Failed");
    assert!(output.ends_with("it has no loom"), "{output}");
}

struct PanickingHandler;

impl RequestHandler for PanickingHandler {
    async fn tool(&self, _: DynamicToolCallParams) -> HandlerAnswer<DynamicToolCallResponse> {
        panic!("this is what the test is about");
    }
}

#[tokio::test]
async fn a_panicking_handler_rejects_the_request() {
    let harness = ClientHarness::open(SCRIPT);
    let client = client(&harness, PanickingHandler).await;
    let mut follower = start_tool_turn(&client).await;
    let (call, _) = finish_turn(&client, &mut follower).await;
    assert_eq!(call, "Failed");
}
