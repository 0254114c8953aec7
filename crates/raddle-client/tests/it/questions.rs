//! What the server asks, and how often whoever answers is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_client::protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse,
    InputTextDynamicToolCallOutputContentItem, ThreadItem, ThreadStartParams,
};
use raddle_client::{
    Client, Options, RejectAll, RequestHandler, ServerQuestion, ThreadEvent, ThreadFollower,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::harness::{ClientHarness, shown};

/// Says what a tool has seen, when it may.
#[derive(Clone)]
struct GatedTool {
    asked: Arc<AtomicUsize>,
    may: Arc<Semaphore>,
    leaves: bool,
}

impl GatedTool {
    fn new(leaves: bool) -> Self {
        Self {
            asked: Arc::default(),
            may: Arc::new(Semaphore::new(0)),
            leaves,
        }
    }

    fn count(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl RequestHandler for GatedTool {
    async fn tool(&self, asked: DynamicToolCallParams) -> Option<DynamicToolCallResponse> {
        assert_eq!(asked.tool, "look");
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.leaves {
            return None;
        }
        self.may.acquire().await.expect("open").forget();
        Some(seen("a raddle"))
    }
}

fn seen(text: &str) -> DynamicToolCallResponse {
    let text = text.to_owned();
    let text = InputTextDynamicToolCallOutputContentItem { text };
    DynamicToolCallResponse {
        content_items: vec![DynamicToolCallOutputContentItem::InputText(text)],
        success: true,
    }
}

async fn client(stage: &ClientHarness, answers: impl RequestHandler) -> Client {
    let mut options = Options::new("it", "1");
    options.experimental = true;
    stage.client_with(options, answers).await
}

/// A thread whose model calls a tool of the client's.
async fn looking(client: &Client) -> ThreadFollower {
    let tools = json!([{"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}]);
    let params = ThreadStartParams {
        dynamic_tools: serde_json::from_value(tools).expect("tools"),
        ..ThreadStartParams::default()
    };
    let follow = client.start(params).await.expect("a thread");
    follow.say("look").await.expect("a turn");
    follow
}

async fn is_asked(follow: &mut ThreadFollower) {
    loop {
        match follow.next().await.expect("a question") {
            ThreadEvent::Question(asked) => {
                assert!(
                    matches!(asked.question, ServerQuestion::Tool(_)),
                    "{asked:?}"
                );
                return;
            }
            ThreadEvent::Lost { why } => panic!("lost: {why}"),
            _ => {}
        }
    }
}

/// What the tool said, as the model read it, and what the thread shows of the call.
async fn ended(client: &Client, follow: &mut ThreadFollower) -> (String, String) {
    let turn = follow.finish().await.expect("the turn ends");
    assert_eq!(
        follow.thread().thread.turns,
        shown(client, follow.id()).await
    );
    assert!(follow.thread().questions.is_empty());
    let call = turn.items.iter().find_map(|item| match item {
        ThreadItem::DynamicToolCall(call) => Some(call.status.clone()),
        _ => None,
    });
    let heard = follow.thread().last_message().unwrap_or_default();
    (format!("{:?}", call.expect("a call")), heard.to_owned())
}

const SAYS: &[&str] = &["calls look {}", "heard"];

#[tokio::test]
async fn a_question_is_put_once_wherever_the_connection_is_cut() {
    for cut in 1..30 {
        let stage = ClientHarness::open(SAYS);
        stage.cut([cut, 4]);
        let looks = GatedTool::new(false);
        // Whoever answers takes its time: the connection may be lost before the answer is there.
        looks.may.add_permits(usize::from(cut % 2 == 0));
        let client = client(&stage, looks.clone()).await;
        let mut follow = looking(&client).await;
        is_asked(&mut follow).await;
        looks.may.add_permits(usize::from(cut % 2 == 1));
        let (call, heard) = ended(&client, &mut follow).await;
        assert_eq!(
            (call.as_str(), heard.as_str()),
            ("Completed", "a raddle"),
            "cut after {cut}"
        );
        assert_eq!(looks.count(), 1, "cut after {cut}");
    }
}

#[tokio::test]
async fn what_is_left_open_can_be_answered_later_or_elsewhere() {
    for elsewhere in [false, true] {
        let stage = ClientHarness::open(SAYS);
        let looks = GatedTool::new(true);
        let client = client(&stage, looks.clone()).await;
        let mut follow = looking(&client).await;
        is_asked(&mut follow).await;
        let asked = follow.thread().questions.clone();
        assert_eq!(asked.len(), 1, "{asked:?}");
        let other = crate::questions::client(&stage, GatedTool::new(true)).await;
        let mut beside = other.open(follow.id()).await.expect("the thread");
        is_asked(&mut beside).await;
        let who = if elsewhere { &other } else { &client };
        let sent = who.answer(&asked[0].id, &seen("two raddles")).await;
        sent.expect("sent");
        let (_, heard) = ended(&client, &mut follow).await;
        assert_eq!(heard, "two raddles");
        ended(&other, &mut beside).await;
    }
}

#[tokio::test]
async fn two_answers_at_once_are_one() {
    // Which of them is seen first is a matter of luck.
    for _ in 0..16 {
        let stage = ClientHarness::open(SAYS);
        stage.cut([usize::MAX]);
        let looks = GatedTool::new(false);
        let client = client(&stage, looks.clone()).await;
        let mut follow = looking(&client).await;
        is_asked(&mut follow).await;
        let asked = follow.thread().questions.clone();
        // Nothing is awaited between these that has to wait: the client finds both when it is next awake.
        looks.may.add_permits(1);
        let sent = client.answer(&asked[0].id, &seen("two raddles")).await;
        sent.expect("sent");
        ended(&client, &mut follow).await;
        assert_eq!(stage.said("contentItems"), 1);
    }
}

#[tokio::test]
async fn a_thread_that_is_opened_again_shows_what_is_open() {
    for leaves in [true, false] {
        let stage = ClientHarness::open(SAYS);
        let looks = GatedTool::new(leaves);
        let client = client(&stage, looks.clone()).await;
        let mut follow = looking(&client).await;
        is_asked(&mut follow).await;
        let thread = follow.id();
        drop(follow);
        let mut again = client.open(thread).await.expect("the thread");
        is_asked(&mut again).await;
        let asked = again.thread().questions.clone();
        let sent = client.answer(&asked[0].id, &seen("two raddles")).await;
        sent.expect("sent");
        let (_, heard) = ended(&client, &mut again).await;
        assert_eq!(heard, "two raddles");
        assert_eq!(looks.count(), 2);
    }
}

#[tokio::test]
async fn what_nobody_answers_is_refused_and_says_why() {
    let stage = ClientHarness::open(SAYS);
    let client = client(&stage, RejectAll).await;
    let mut follow = looking(&client).await;
    let (call, heard) = ended(&client, &mut follow).await;
    assert_eq!(call, "Failed");
    assert_eq!(heard, "this client does not run look");
}

struct PanickingHandler;

impl RequestHandler for PanickingHandler {
    async fn tool(&self, _: DynamicToolCallParams) -> Option<DynamicToolCallResponse> {
        panic!("this is what the test is about");
    }
}

#[tokio::test]
async fn whoever_panics_has_refused() {
    let stage = ClientHarness::open(SAYS);
    let client = client(&stage, PanickingHandler).await;
    let mut follow = looking(&client).await;
    let (call, _) = ended(&client, &mut follow).await;
    assert_eq!(call, "Failed");
}
