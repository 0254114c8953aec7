//! Calls of two threads that share the process of a plugin.

use std::path::PathBuf;
use std::sync::Mutex;

use raddle_core::ports::{PluginEvent, PluginEventListener, QuestionSink};
use raddle_core::{Ask, RequestAnswer, Resolution, ThreadId};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex,
    split,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::log_file::LogFile;
use crate::mcp::CallUser;
use crate::sidecar::answer_channel::{self, AnswerSender};
use crate::sidecar::events::EventReceiver;
use crate::sidecar::inspection::InspectedPlugin;
use crate::sidecar::session::PluginSession;

/// A user that approves all, and the listener of the same thread.
#[derive(Default)]
struct FakeThread {
    asked: Mutex<Vec<String>>,
    events: Mutex<Vec<PluginEvent>>,
}

impl FakeThread {
    /// Takes the questions and the events so far.
    fn taken(&self) -> (usize, usize) {
        let asked = std::mem::take(&mut *self.asked.lock().expect("questions"));
        let events = std::mem::take(&mut *self.events.lock().expect("events"));
        (asked.len(), events.len())
    }
}

struct FakeUser(Arc<FakeThread>);

impl QuestionSink for FakeUser {
    fn ask(&self, ask: Ask) -> BoxFuture<'static, Resolution> {
        let Ask::Elicitation(question) = ask else {
            panic!("another question");
        };
        let mut asked = self.0.asked.lock().expect("questions");
        asked.push(question.body["message"].to_string());
        let body = json!({ "action": "accept" });
        Box::pin(std::future::ready(Resolution::Answered {
            by: "me".to_owned(),
            answer: Box::new(RequestAnswer::Elicitation { body }),
        }))
    }
}

/// A plugin whose messages a test writes, and the host's side of it.
struct SharedProcess {
    _home: TempDir,
    host: Arc<PluginHost>,
    running: Arc<RunningPlugin>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    sink: WriteHalf<DuplexStream>,
}

/// A call of a thread.
struct ThreadCall {
    thread: Arc<FakeThread>,
    stop: oneshot::Sender<()>,
    outcome: JoinHandle<Result<Value, PluginToolError>>,
}

impl SharedProcess {
    fn start() -> Self {
        let home = TempDir::new().expect("a home");
        let permissions = "permissions = ['workspace.read', 'workspace.write']";
        let manifest =
            format!("id = 'org.example'\nversion = '1'\nentrypoint = ['x']\n{permissions}");
        std::fs::write(home.path().join("plugin.toml"), manifest).expect("a manifest");
        let plugin = InspectedPlugin::read(home.path()).expect("a plugin");
        let log = LogFile::open(home.path().join("log"));
        let host = Arc::new(PluginHost::new(&plugin, log, home.path()));
        let (ours, theirs) = duplex(1 << 16);
        let (source, sink) = split(ours);
        let session = PluginSession::start(source, sink, host.clone());
        let running = Arc::new(RunningPlugin::new(session, PathBuf::from("x"), Vec::new()));
        let (source, sink) = split(theirs);
        Self {
            _home: home,
            host,
            running,
            lines: BufReader::new(source).lines(),
            sink,
        }
    }

    /// Makes a call of a new thread, and waits until the plugin reads the request with this id.
    async fn call(&mut self, id: &str, limit: Duration) -> ThreadCall {
        self.call_of(id, limit, None).await
    }

    /// The same for a call with this receiver of an answer.
    async fn call_of(
        &mut self,
        id: &str,
        limit: Duration,
        answer: Option<AnswerSender>,
    ) -> ThreadCall {
        let thread = Arc::new(FakeThread::default());
        let (stop, stopped) = oneshot::channel();
        let (number, sink) = (ThreadId::mint(), thread.clone());
        let listener: PluginEventListener = Box::new(move |event| {
            sink.events.lock().expect("events").push(event);
            true
        });
        let call = PluginCall {
            method: "x".to_owned(),
            arguments: json!({}),
            user: Some(CallUser {
                thread: number,
                questions: Arc::new(FakeUser(thread.clone())),
            }),
            limit,
            answer,
            acts: None,
            events: EventReceiver {
                owner: EventOwner::Thread(number),
                listener,
            },
            stopped: Box::pin(async {
                let _ = stopped.await;
            }),
            writable: Vec::new(),
        };
        let opened = OpenedCall::new(&self.host, call);
        let running = self.running.clone();
        let outcome = tokio::spawn(async move { opened.answered(&running).await });
        assert_eq!(self.next().await["id"], id);
        ThreadCall {
            thread,
            stop,
            outcome,
        }
    }

    async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.sink.write_all(line.as_bytes()).await.expect("a pipe");
    }

    async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("a pipe");
        serde_json::from_str(&line.expect("a line")).expect("JSON")
    }

    /// Sends an event, and asks for a permission without the id of a call. Returns the response.
    async fn send_unnamed(&mut self, permission: &str) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "method": "codex/event", "params": {} }))
            .await;
        let params = json!({ "permission": permission });
        let method = "host/request_approval";
        self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
            .await;
        self.next().await
    }

    async fn respond(&mut self, id: &str) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": 7 }))
            .await;
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn late_work_of_a_stopped_call_reaches_no_other_thread() {
    let mut plugin = SharedProcess::start();
    let first = plugin.call("raddle-1", HOUR).await;
    let second = plugin.call("raddle-2", HOUR).await;
    first.stop.send(()).expect("a call");
    let outcome = first.outcome.await.expect("it ends");
    assert!(matches!(outcome, Err(PluginToolError::Stopped)));
    // Only the second call is open, and the plugin works on the first one.
    let response = plugin.send_unnamed("workspace.read").await;
    let error = response["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("send `call_id`"), "{response}");
    assert_eq!(first.thread.taken(), (0, 0));
    assert_eq!(second.thread.taken(), (0, 0));
    // A question with a name reaches its own user, and one of the stopped call nobody.
    for (id, asked) in [("raddle-1", 0), ("raddle-2", 1)] {
        let params = json!({ "permission": "workspace.write", "call_id": id });
        let method = "host/request_approval";
        plugin
            .send(json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params }))
            .await;
        let response = plugin.next().await;
        assert_eq!(response["error"].is_object(), asked == 0, "{response}");
        assert_eq!(second.thread.taken(), (asked, 0), "{id}");
    }
    // Its late response ends the work.
    plugin.respond("raddle-1").await;
    let response = plugin.send_unnamed("workspace.read").await;
    assert_eq!(response["result"]["approved"], true, "{response}");
    assert_eq!(first.thread.taken(), (0, 0));
    assert_eq!(second.thread.taken(), (1, 1));
    plugin.respond("raddle-2").await;
    let outcome = second.outcome.await.expect("it ends");
    assert_eq!(outcome.expect("a result"), 7);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_hangs_is_ended_although_another_thread_waits() {
    for is_silent in [true, false] {
        let mut plugin = SharedProcess::start();
        let second = plugin.call("raddle-1", HOUR).await;
        let first = plugin.call("raddle-2", Duration::from_secs(120)).await;
        if !is_silent {
            let response = plugin.send_unnamed("workspace.read").await;
            assert!(response["error"].is_object(), "{response}");
        }
        let outcome = first.outcome.await.expect("it ends");
        assert!(matches!(outcome, Err(PluginToolError::TimedOut(_))));
        assert_eq!(plugin.running.failure.get().is_some(), is_silent);
        assert!(!second.outcome.is_finished());
    }
}

#[tokio::test]
async fn an_event_of_an_answer_names_its_call() {
    let mut plugin = SharedProcess::start();
    let (sender, mut first) = answer_channel::channel();
    let call = plugin.call_of("raddle-1", HOUR, Some(sender)).await;
    let (sender, mut second) = answer_channel::channel();
    let _open = plugin.call_of("raddle-2", HOUR, Some(sender)).await;
    call.outcome.abort();
    assert!(call.outcome.await.is_err());
    for call_id in [json!("raddle-1"), Value::Null, json!("raddle-2")] {
        let params = json!({ "call_id": call_id, "event": call_id });
        plugin
            .send(json!({ "jsonrpc": "2.0", "method": "model/event", "params": params }))
            .await;
    }
    plugin
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "host/ping" }))
        .await;
    plugin.next().await;
    assert_eq!(second.ready(), Some(json!("raddle-2")));
    assert_eq!((first.ready(), second.ready()), (None, None));
}

/// A thread alone has no other one whose answer it could receive, but its own earlier one.
#[tokio::test]
async fn an_unnamed_event_belongs_to_no_answer() {
    let mut plugin = SharedProcess::start();
    let (sender, mut answer) = answer_channel::channel();
    let _open = plugin.call_of("raddle-1", HOUR, Some(sender)).await;
    for params in [
        json!({ "event": 1 }),
        json!({ "event": 2, "call_id": "raddle-1" }),
    ] {
        plugin
            .send(json!({ "jsonrpc": "2.0", "method": "model/event", "params": params }))
            .await;
    }
    plugin
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "host/ping" }))
        .await;
    plugin.next().await;
    assert_eq!(answer.ready(), Some(json!(2)));
}

#[tokio::test]
async fn a_process_that_answers_no_stopped_call_is_ended() {
    let mut plugin = SharedProcess::start();
    for number in 1..=257 {
        assert_eq!(plugin.running.failure.get(), None, "{number}");
        let call = plugin.call(&format!("raddle-{number}"), HOUR).await;
        call.outcome.abort();
        assert!(call.outcome.await.is_err());
    }
    assert!(plugin.running.failure.get().is_some());
}
