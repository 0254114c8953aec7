//! Which questions reach the user, and what the server gets back.

use raddle_core::ports::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use super::super::fake_server::FakeServer;
use super::super::handler::Handler;
use super::*;

/// A user that resolves every question in this way, once the test allows it.
struct FakeUser {
    resolution: Resolution,
    asked: AtomicUsize,
    allowed: Arc<Semaphore>,
    /// Notified when a question was resolved or dropped.
    ended: Arc<Notify>,
}

/// Notifies when it is dropped.
struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl FakeUser {
    fn new(resolution: Resolution) -> Arc<Self> {
        Arc::new(Self {
            resolution,
            asked: AtomicUsize::new(0),
            allowed: Arc::new(Semaphore::new(0)),
            ended: Arc::default(),
        })
    }

    fn of(self: &Arc<Self>, thread: ThreadId) -> Option<CallUser> {
        Some(CallUser {
            thread,
            questions: self.clone(),
        })
    }
}

impl QuestionSink for FakeUser {
    fn ask(&self, ask: Ask) -> BoxFuture<'static, Resolution> {
        assert!(matches!(ask, Ask::Elicitation(it) if it.server == "s"));
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (resolution, allowed) = (self.resolution.clone(), self.allowed.clone());
        let ended = NotifyOnDrop(self.ended.clone());
        Box::pin(async move {
            let _ended = ended;
            allowed.acquire().await.expect("a permit").forget();
            resolution
        })
    }
}

fn answered(answer: RequestAnswer) -> Resolution {
    Resolution::Answered {
        by: "me".to_owned(),
        answer: Box::new(answer),
    }
}

fn elicitation(body: Value) -> Resolution {
    answered(RequestAnswer::Elicitation { body })
}

fn form() -> ElicitRequestParams {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "which?", "requestedSchema": schema});
    serde_json::from_value(params).expect("params")
}

fn url() -> ElicitRequestParams {
    let url = "https://example.com/";
    let params = json!({"mode": "url", "message": "visit", "url": url, "elicitationId": "e"});
    serde_json::from_value(params).expect("params")
}

#[tokio::test]
async fn the_server_gets_the_decision_of_the_user() {
    let accepted = json!({"action": "accept", "content": {"a": "b"}, "_meta": null});
    let declined = json!({"action": "decline", "content": {"a": "b"}, "_meta": null});
    for (params, resolution, expected) in [
        (
            form(),
            elicitation(accepted.clone()),
            json!({"action": "accept", "content": {"a": "b"}}),
        ),
        (url(), elicitation(accepted), json!({"action": "accept"})),
        (form(), elicitation(declined), json!({"action": "decline"})),
        (
            form(),
            elicitation(json!({"action": "cancel"})),
            json!({"action": "cancel"}),
        ),
        (
            form(),
            elicitation(json!("odd")),
            json!({"action": "decline"}),
        ),
        (
            form(),
            answered(RequestAnswer::Decline {}),
            json!({"action": "decline"}),
        ),
        (form(), Resolution::Expired {}, json!({"action": "cancel"})),
        (
            form(),
            Resolution::Withdrawn {},
            json!({"action": "cancel"}),
        ),
    ] {
        let user = FakeUser::new(resolution);
        user.allowed.add_permits(1);
        let elicitations = Elicitations::new("s".to_owned());
        let _call = elicitations.add_call(user.of(ThreadId::mint()));
        let result = elicitations.ask(params).await;
        assert_eq!(serde_json::to_value(result).expect("JSON"), expected);
    }
}

#[tokio::test]
async fn a_question_needs_calls_of_exactly_one_thread() {
    let accepted = json!({"action": "accept", "content": {"a": "b"}});
    let (first, second) = (ThreadId::mint(), ThreadId::mint());
    for (calls, expected) in [
        (vec![], ElicitationAction::Decline),
        (vec![Some(first)], ElicitationAction::Accept),
        (vec![Some(first), Some(first)], ElicitationAction::Accept),
        (vec![Some(first), Some(second)], ElicitationAction::Decline),
        (vec![Some(first), None], ElicitationAction::Decline),
        (vec![None], ElicitationAction::Decline),
    ] {
        let user = FakeUser::new(elicitation(accepted.clone()));
        user.allowed.add_permits(1);
        let elicitations = Elicitations::new("s".to_owned());
        let add = |thread: &Option<ThreadId>| {
            let user = thread.and_then(|it| user.of(it));
            elicitations.add_call(user)
        };
        let open: Vec<CallElicitations> = calls.iter().map(add).collect();
        let result = elicitations.ask(form()).await;
        assert_eq!(result.action, expected, "{calls:?}");
        drop(open);
        // A call that has ended gets no questions.
        let result = elicitations.ask(form()).await;
        assert_eq!(result.action, ElicitationAction::Decline);
    }
}

#[tokio::test]
async fn the_questions_of_a_call_are_limited() {
    let user = FakeUser::new(Resolution::Expired {});
    let elicitations = Elicitations::new("s".to_owned());
    let _call = elicitations.add_call(user.of(ThreadId::mint()));
    let mut open = JoinSet::new();
    for _ in 0..OPEN_MAX {
        let elicitations = elicitations.clone();
        open.spawn(async move { elicitations.ask(form()).await.action });
    }
    while user.asked.load(Ordering::Relaxed) < OPEN_MAX {
        tokio::task::yield_now().await;
    }
    let result = elicitations.ask(form()).await;
    assert_eq!(result.action, ElicitationAction::Decline);
    user.allowed.add_permits(ASKED_MAX);
    for action in open.join_all().await {
        assert_eq!(action, ElicitationAction::Cancel);
    }
    for _ in OPEN_MAX..ASKED_MAX {
        let result = elicitations.ask(form()).await;
        assert_eq!(result.action, ElicitationAction::Cancel);
    }
    let result = elicitations.ask(form()).await;
    assert_eq!(result.action, ElicitationAction::Decline);
    assert_eq!(user.asked.load(Ordering::Relaxed), ASKED_MAX);
}

#[tokio::test]
async fn the_timeout_of_a_call_stops_while_a_question_is_open() {
    let user = FakeUser::new(Resolution::Expired {});
    let elicitations = Elicitations::new("s".to_owned());
    let call = elicitations.add_call(user.of(ThreadId::mint()));
    let asked = elicitations.clone();
    let question = tokio::spawn(async move { asked.ask(form()).await.action });
    while user.asked.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let mut timeout = Box::pin(call.timeout(Duration::ZERO));
    assert!(poll_once(&mut timeout).await.is_none());
    user.allowed.add_permits(1);
    question.await.expect("an answer");
    timeout.await;
}

async fn poll_once(future: &mut (impl Future<Output = ()> + Unpin)) -> Option<()> {
    tokio::select! {
        biased;
        () = future => Some(()),
        () = tokio::task::yield_now() => None,
    }
}

#[tokio::test]
async fn the_input_that_a_result_requires_is_asked_for_by_its_call() {
    let answer = json!({"action": "accept", "content": {"a": "b"}});
    let user = FakeUser::new(elicitation(answer.clone()));
    user.allowed.add_permits(2);
    let elicitations = Elicitations::new("s".to_owned());
    // A call of another thread does not matter: the result names its call.
    let _other = elicitations.add_call(user.of(ThreadId::mint()));
    let call = elicitations.add_call(user.of(ThreadId::mint()));
    let request = json!({
        "method": "elicitation/create",
        "params": serde_json::to_value(form()).expect("JSON"),
    });
    let inputs = json!({"first": request, "second": request});
    let inputs = serde_json::from_value(inputs).expect("inputs");
    let responses = call.answer(inputs).await.expect("responses");
    let expected = json!({"first": answer, "second": answer});
    assert_eq!(serde_json::to_value(responses).expect("JSON"), expected);
    let roots = serde_json::from_value(json!({"roots": {"method": "roots/list"}}));
    let rejected = call.answer(roots.expect("inputs")).await;
    assert!(matches!(rejected, Err(CallError::UnsupportedInput)));
}

#[tokio::test]
async fn a_read_counts_and_has_no_influence_on_questions() {
    let elicitations = Elicitations::new("s".to_owned());
    assert!(!elicitations.has_calls());
    let read = elicitations.add_read();
    assert!(elicitations.has_calls());
    let user = FakeUser::new(elicitation(json!({"action": "accept", "content": {}})));
    user.allowed.add_permits(1);
    let call = elicitations.add_call(user.of(ThreadId::mint()));
    let result = elicitations.ask(form()).await;
    assert_eq!(result.action, ElicitationAction::Accept);
    drop(call);
    assert!(elicitations.has_calls());
    drop(read);
    assert!(!elicitations.has_calls());
}

fn handler(elicitations: Arc<Elicitations>) -> Handler {
    Handler {
        server: "s".into(),
        calls: Arc::default(),
        elicitations,
        tools_changed: Arc::default(),
        log: Arc::default(),
        output: None,
    }
}

#[tokio::test]
async fn the_end_of_the_server_ends_its_question() {
    let elicitations = Elicitations::new("s".to_owned());
    let user = FakeUser::new(elicitation(json!({"action": "accept", "content": {}})));
    let _call = elicitations.add_call(user.of(ThreadId::mint()));
    let (open, output) = watch::channel(());
    let handler = Handler {
        output: Some(output),
        ..handler(elicitations)
    };
    let asking = tokio::spawn(async move { handler.ask(form()).await });
    while user.asked.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    drop(open);
    let result = asking.await.expect("a result");
    assert_eq!(result.action, ElicitationAction::Cancel);
}

#[tokio::test]
async fn a_question_that_its_server_cancels_is_dropped_and_the_call_can_ask_again() {
    let elicitations = Elicitations::new("s".to_owned());
    let user = FakeUser::new(elicitation(json!({"action": "decline"})));
    let _call = elicitations.add_call(user.of(ThreadId::mint()));
    let (_service, mut server) = FakeServer::connect(handler(elicitations)).await;
    let params = serde_json::to_value(form()).expect("JSON");
    let method = "elicitation/create";
    let request =
        |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    server.send(request("first")).await;
    while user.asked.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let params = json!({"requestId": "first", "reason": "it is no longer needed"});
    let method = "notifications/cancelled";
    let cancelled = json!({"jsonrpc": "2.0", "method": method, "params": params});
    server.send(cancelled).await;
    user.ended.notified().await;
    user.allowed.add_permits(1);
    server.send(request("second")).await;
    // A cancelled request gets no response.
    let response = server.next().await;
    let expected = json!({"jsonrpc": "2.0", "id": "second", "result": {"action": "decline"}});
    assert_eq!(response, expected);
}
