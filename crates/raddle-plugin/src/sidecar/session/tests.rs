use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{
    AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf,
    WriteHalf, duplex, split,
};

use super::*;

/// Timeout of every wait in a test. Only a failing test waits this long.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

impl ByteSource for ReadHalf<DuplexStream> {
    async fn read_bytes(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.read(buffer).await
    }
}

impl FrameSink for WriteHalf<DuplexStream> {
    async fn send_frame(&mut self, frame: Vec<u8>) -> std::io::Result<()> {
        self.write_all(&frame).await
    }
}

/// A host that calls the other side in the middle of calls.
#[derive(Default)]
struct NestingHost {
    session: OnceLock<PluginSession>,
    served: AtomicUsize,
    notified: AtomicUsize,
    faults: Mutex<Vec<FrameFault>>,
}

impl HostMethods for NestingHost {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>> {
        Box::pin(async move {
            self.served.fetch_add(1, Ordering::Relaxed);
            let depth = params["depth"].as_u64().unwrap_or(0);
            let failed = |message: String| ErrorObject::new(code::INTERNAL, message);
            match (method, depth) {
                ("wait", _) => std::future::pending().await,
                ("nest", 0) => Ok(json!(0)),
                ("nest", depth) => {
                    let session = self.session.get().expect("a session");
                    let params = json!({ "depth": depth - 1 });
                    let inner = session.call("nest", &params, TEST_TIMEOUT).await;
                    let inner = inner.map_err(|error| failed(error.to_string()))?;
                    Ok(json!(inner.as_u64().unwrap_or(0) + 1))
                }
                _ => Err(ErrorObject::new(code::METHOD_NOT_FOUND, "unknown")),
            }
        })
    }

    fn notify(&self, _method: &str, _params: Value) {
        self.notified.fetch_add(1, Ordering::Relaxed);
    }

    fn report(&self, fault: FrameFault) {
        lock(&self.faults).push(fault);
    }
}

/// Starts one side on a pipe, with a queue of this length.
fn side(end: DuplexStream, frames_max: usize) -> (Arc<NestingHost>, PluginSession) {
    let (source, sink) = split(end);
    let host = Arc::new(NestingHost::default());
    let options = SessionOptions {
        frames_max,
        pacer: None,
    };
    let session = PluginSession::with(source, sink, host.clone(), options);
    assert!(host.session.set(session.clone()).is_ok());
    (host, session)
}

/// Records what an observer of a call learns.
#[derive(Default)]
struct CallRecorder {
    id: OnceLock<String>,
    stopped: OnceLock<String>,
}

impl CallObserver for CallRecorder {
    fn set_id(&self, id: &str) {
        self.id.set(id.to_owned()).expect("once");
    }

    fn set_stopped(&self, id: &str) {
        self.stopped.set(id.to_owned()).expect("once");
    }
}

/// The plugin's end of the pipes, used by hand.
struct RawPlugin {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    sink: WriteHalf<DuplexStream>,
}

impl RawPlugin {
    fn new(end: DuplexStream) -> Self {
        let (source, sink) = split(end);
        Self {
            lines: BufReader::new(source).lines(),
            sink,
        }
    }

    async fn send(&mut self, text: &str) {
        self.sink.write_all(text.as_bytes()).await.expect("a pipe");
        self.sink.write_all(b"\n").await.expect("a pipe");
    }

    async fn next(&mut self) -> Value {
        let line = timeout(TEST_TIMEOUT, self.lines.next_line());
        let line = line.await.expect("in time").expect("a pipe");
        serde_json::from_str(&line.expect("a line")).expect("JSON")
    }
}

/// Calls inside calls from both sides, with pipes and queues that are always full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_nested_rounds_of_both_sides_end() {
    const ROUNDS: usize = 10_000;
    // Three levels of this many calls stay within the limit of open calls.
    const TASKS: usize = 20;
    let (ours, theirs) = duplex(16);
    let (first_host, first) = side(ours, 1);
    let (second_host, second) = side(theirs, 1);
    let mut rounds = JoinSet::new();
    for session in [first, second] {
        for _ in 0..TASKS {
            let session = session.clone();
            rounds.spawn(async move {
                for _ in 0..ROUNDS / TASKS {
                    let params = json!({ "depth": 2 });
                    let result = session.call("nest", &params, TEST_TIMEOUT).await;
                    assert_eq!(result, Ok(json!(2)));
                }
            });
        }
    }
    timeout(TEST_TIMEOUT * 2, rounds.join_all())
        .await
        .expect("every call ends");
    for host in [first_host, second_host] {
        assert_eq!(host.served.load(Ordering::Relaxed), 3 * ROUNDS);
        assert_eq!(*lock(&host.faults), []);
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_fail_at_once_and_all_end() {
    let (ours, theirs) = duplex(16);
    let (_, session) = side(ours, 1);
    let mut plugin = RawPlugin::new(theirs);
    let mut calls = JoinSet::new();
    for _ in 0..HOST_CALLS_MAX + 10 {
        let session = session.clone();
        calls.spawn(async move { session.call("x", &json!({}), TEST_TIMEOUT).await });
    }
    for _ in 0..HOST_CALLS_MAX {
        let request = plugin.next().await;
        let id = &request["id"];
        assert!(id.is_string(), "{request}");
        plugin
            .send(&json!({ "jsonrpc": "2.0", "id": id, "result": 1 }).to_string())
            .await;
    }
    let outcomes = calls.join_all().await;
    let count = |outcome| outcomes.iter().filter(|it| **it == outcome).count();
    assert_eq!(count(Ok(json!(1))), HOST_CALLS_MAX);
    assert_eq!(count(Err(PluginCallError::Busy)), 10);
}

#[tokio::test]
async fn messages_of_a_plugin_are_answered_passed_on_or_reported() {
    let (ours, theirs) = duplex(1 << 10);
    let (host, session) = side(ours, QUEUE_FRAMES_MAX);
    let mut plugin = RawPlugin::new(theirs);
    plugin
        .send(r#"{"jsonrpc":"2.0","id":"host-1-ping","method":"host/ping"}"#)
        .await;
    let pong = json!({ "jsonrpc": "2.0", "id": "host-1-ping", "result": { "pong": true } });
    assert_eq!(plugin.next().await, pong);
    plugin
        .send(r#"{"jsonrpc":"2.0","id":7,"method":"host/other","params":{}}"#)
        .await;
    let response = plugin.next().await;
    assert_eq!(
        (&response["id"], &response["error"]["code"]),
        (&json!(7), &json!(-32601))
    );
    // A response in the middle of other lines, with an error that has no code.
    let calling = session.clone();
    let call = async move { calling.call("x", &json!({ "a": 1 }), TEST_TIMEOUT).await };
    let call = tokio::spawn(call);
    let request = plugin.next().await;
    let expected = json!({ "jsonrpc": "2.0", "id": "raddle-1", "method": "x", "params": {"a": 1} });
    assert_eq!(request, expected);
    plugin.send("ready!").await;
    plugin
        .send(r#"{"jsonrpc":"2.0","method":"codex/event","params":{}}"#)
        .await;
    plugin
        .send(r#"{"jsonrpc":"2.0","id":"raddle-9","result":1}"#)
        .await;
    plugin
        .send(&format!("\"{}\"", "x".repeat(FRAME_BYTES_MAX)))
        .await;
    plugin
        .send(r#"{"jsonrpc":"2.0","id":"raddle-1","error":{"message":"no"}}"#)
        .await;
    let error = call.await.expect("it ends").expect_err("an error");
    assert_eq!(error.to_string(), "the plugin responded with an error: no");
    let expected = [
        FrameFault::NotAMessage("ready!".to_owned()),
        FrameFault::UnknownId("raddle-9".to_owned()),
        FrameFault::TooLong,
    ];
    assert_eq!(*lock(&host.faults), expected);
    assert_eq!(host.notified.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_id_of_a_call_is_known_before_the_plugin_reads_it() {
    let (ours, theirs) = duplex(1 << 10);
    let (_, session) = side(ours, QUEUE_FRAMES_MAX);
    let mut plugin = RawPlugin::new(theirs);
    let observer = Arc::new(CallRecorder::default());
    let known = observer.clone();
    let call = tokio::spawn(async move {
        let params = json!({});
        let call = session.observed_call("x", &params, TEST_TIMEOUT, &*observer);
        call.await
    });
    let request = plugin.next().await;
    assert_eq!(request["id"], *known.id.get().expect("an id").as_str());
    let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": 1 });
    plugin.send(&response.to_string()).await;
    assert_eq!(call.await.expect("it ends"), Ok(json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_call_is_stopped_only_between_its_request_and_its_response() {
    let (ours, theirs) = duplex(1 << 10);
    let (_, session) = side(ours, QUEUE_FRAMES_MAX);
    let mut plugin = RawPlugin::new(theirs);
    let params = json!({});
    let stopped = CallRecorder::default();
    let limit = Duration::from_secs(1);
    let outcome = session.observed_call("x", &params, limit, &stopped).await;
    assert_eq!(outcome, Err(PluginCallError::TimedOut(limit)));
    assert_eq!(stopped.stopped.get(), stopped.id.get());
    plugin.next().await;
    let answered = CallRecorder::default();
    let call = session.observed_call("x", &params, TEST_TIMEOUT, &answered);
    let answer = async {
        let id = plugin.next().await["id"].clone();
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": 1 });
        plugin.send(&response.to_string()).await;
    };
    assert_eq!(tokio::join!(call, answer).0, Ok(json!(1)));
    // It is too long to be sent.
    let long = json!("x".repeat(FRAME_BYTES_MAX));
    let unsent = CallRecorder::default();
    let outcome = session
        .observed_call("x", &long, TEST_TIMEOUT, &unsent)
        .await;
    assert_eq!(outcome, Err(PluginCallError::TooLong));
    for observer in [answered, unsent] {
        assert_eq!(observer.stopped.get(), None);
    }
}

#[tokio::test]
async fn open_calls_fail_when_the_plugin_ends() {
    let (ours, theirs) = duplex(1 << 10);
    let (host, session) = side(ours, QUEUE_FRAMES_MAX);
    let mut plugin = RawPlugin::new(theirs);
    let calling = session.clone();
    let call = tokio::spawn(async move { calling.call("x", &json!({}), TEST_TIMEOUT).await });
    plugin.next().await;
    plugin.sink.write_all(b"half a li").await.expect("a pipe");
    drop(plugin);
    assert_eq!(call.await.expect("it ends"), Err(PluginCallError::Closed));
    timeout(TEST_TIMEOUT, session.closed())
        .await
        .expect("in time");
    let late = session.call("x", &json!({}), TEST_TIMEOUT).await;
    assert_eq!(late, Err(PluginCallError::Closed));
    assert_eq!(
        *lock(&host.faults),
        [FrameFault::NotAMessage("half a li".to_owned())]
    );
}

/// A plugin that sends all of its calls before it reads gets a response to each.
#[tokio::test]
async fn a_burst_of_unread_calls_is_answered() {
    const CALLS: usize = 500;
    let (ours, theirs) = duplex(16);
    let (host, session) = side(ours, QUEUE_FRAMES_MAX);
    let mut plugin = RawPlugin::new(theirs);
    for number in 0..CALLS {
        let id = number.to_string();
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "host/ping" });
        plugin.send(&request.to_string()).await;
    }
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..CALLS {
        let response = plugin.next().await;
        let error = &response["error"];
        assert!(
            error.is_null() || error["code"] == code::OVERLOADED,
            "{response}"
        );
        ids.insert(response["id"].as_str().expect("an id").to_owned());
    }
    assert_eq!(ids.len(), CALLS);
    assert!(lock(&host.faults).contains(&FrameFault::TooManyCalls));
    assert!(!session.is_closed());
}

/// A plugin that calls without pause and reads no responses loses its session, and the host's call
/// ends.
#[tokio::test]
async fn a_plugin_that_floods_and_does_not_read_loses_its_session() {
    let (ours, theirs) = duplex(16);
    let (host, session) = side(ours, 4);
    let mut plugin = RawPlugin::new(theirs);
    let calling = session.clone();
    let call = tokio::spawn(async move { calling.call("x", &json!({}), TEST_TIMEOUT).await });
    let flood = async {
        for number in 0.. {
            let request = json!({ "jsonrpc": "2.0", "id": number.to_string(), "method": "wait" });
            let line = format!("{request}\n");
            if plugin.sink.write_all(line.as_bytes()).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = flood => {}
        () = session.closed() => {}
        () = tokio::time::sleep(TEST_TIMEOUT) => panic!("the session goes on"),
    }
    assert_eq!(call.await.expect("it ends"), Err(PluginCallError::Closed));
    assert!(lock(&host.faults).contains(&FrameFault::TooManyCalls));
}

/// A plugin that sends without pause is read at a limited pace. The clock is virtual.
#[tokio::test(start_paused = true)]
async fn a_flood_of_messages_is_read_at_a_pace() {
    let (ours, theirs) = duplex(1 << 20);
    let (source, sink) = split(ours);
    let host = Arc::new(NestingHost::default());
    let session = PluginSession::start(source, sink, host.clone());
    let mut plugin = RawPlugin::new(theirs);
    let began = tokio::time::Instant::now();
    for _ in 0..4_000 {
        plugin.send(r#"{"jsonrpc":"2.0","method":"event"}"#).await;
    }
    drop(plugin);
    session.closed().await;
    assert_eq!(host.notified.load(Ordering::Relaxed), 4_000);
    // The burst is free, and about 1,000 messages are read in a second after it.
    let elapsed = began.elapsed();
    assert!(elapsed > Duration::from_secs(1), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
}

#[test]
fn the_largest_message_is_read_at_once() {
    assert!(crate::read_pacer::is_within_burst(FRAME_BYTES_MAX));
}
