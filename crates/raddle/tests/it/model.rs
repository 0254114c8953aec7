//! Turns of the real server against `raddle mock`.

mod accounts;
mod budget;
mod fallback;
mod file_holds;
mod grants;
mod hooks;
mod hunks;
mod keys;
mod limited_reads;
mod log_spans;
mod log_volume;
mod mcp;
mod mcp_servers;
mod plugins;
mod progress;
mod review;
mod swapped_folders;
mod tool_gate;
mod tools;
mod uncovered_files;
mod wires;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};

use crate::support::server::{TestServer, command};
use crate::support::stdio::Pipes;

/// A running mock, killed on drop.
pub(crate) struct MockModel {
    child: Child,
    base_url: String,
}

impl MockModel {
    pub(crate) fn start(script: &str) -> Self {
        let mut file = NamedTempFile::new().expect("a file");
        file.write_all(script.as_bytes()).expect("a script");
        let home = TempDir::new().expect("a home");
        let mut command = command(home.path());
        command
            .args(["mock", "--listen", "127.0.0.1:0", "--script"])
            .arg(file.path())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the binary starts");
        let stdout = child.stdout.take().expect("stdout");
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        read.expect("a line");
        Self {
            child,
            base_url: line.trim_end().to_owned(),
        }
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        let address = self.base_url.strip_prefix("http://").expect("an address");
        address.split_once('/').expect("a path").0
    }

    /// The arguments of a server that uses the mock, with these settings.
    pub(crate) fn arguments(&self, settings: &[&str]) -> Vec<String> {
        let base_url = format!("base_url={}", self.base_url);
        let mut arguments = vec!["model=mock".to_owned(), "model_provider=mock".to_owned()];
        for setting in [base_url.as_str()].iter().chain(settings) {
            arguments.push(format!("model_providers.mock.{setting}"));
        }
        let arguments = arguments.into_iter();
        arguments.flat_map(|it| ["-c".to_owned(), it]).collect()
    }

    /// The bodies of the requests to the model, oldest first.
    pub(crate) fn request_bodies(&self) -> Vec<Value> {
        self.requests("body")
    }

    /// The headers of these requests.
    fn headers(&self) -> Vec<Value> {
        self.requests("headers")
    }

    fn requests(&self, member: &str) -> Vec<Value> {
        let page = self.request_log();
        let requests = page["requests"].as_array().expect("requests");
        requests.iter().map(|it| it[member].clone()).collect()
    }

    /// The mock's page about its requests.
    pub(crate) fn request_log(&self) -> Value {
        let host = self.address();
        let mut stream = TcpStream::connect(host).expect("the mock listens");
        let request =
            format!("GET /requests HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client with one thread, whose model is a mock.
struct MockClient {
    // Dropped, and so ended, before the mock.
    server: TestServer,
    mock: MockModel,
    pipes: Pipes,
    thread: String,
    last_id: u64,
}

impl MockClient {
    fn start(script: &str, settings: &[&str]) -> Self {
        Self::with(MockModel::start(script), settings)
    }

    fn with(mock: MockModel, settings: &[&str]) -> Self {
        let arguments = mock.arguments(settings);
        Self::of(mock, &arguments)
    }

    /// A client whose server is started with these arguments.
    fn of(mock: MockModel, arguments: &[String]) -> Self {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Self::at(mock, TestServer::start(&arguments))
    }

    /// A client of this server, which uses the mock.
    fn at(mock: MockModel, mut server: TestServer) -> Self {
        let mut pipes = server.pipes();
        pipes.hello();
        Self::on(mock, server, pipes)
    }

    /// A client with the experimental API.
    fn experimental(script: &str) -> Self {
        let mock = MockModel::start(script);
        let arguments = mock.arguments(&[]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut server = TestServer::start(&arguments);
        let mut pipes = server.pipes();
        let params = json!({
            "clientInfo": { "name": "test", "version": "1" }, "capabilities": { "experimentalApi": true },
        });
        let hello = json!({ "id": "hello", "method": "initialize", "params": params });
        let answer = pipes.ask(hello.to_string().as_bytes());
        assert!(answer["result"].is_object(), "{answer}");
        Self::on(mock, server, pipes)
    }

    /// A client that has sent `initialize`.
    fn on(mock: MockModel, server: TestServer, pipes: Pipes) -> Self {
        let work = server.home().join("work");
        std::fs::create_dir(&work).expect("a folder");
        let mut client = Self {
            server,
            mock,
            pipes,
            thread: String::new(),
            last_id: 100,
        };
        client.ask("thread/start", json!({ "cwd": work }));
        let started = client.until(|it| it["id"] == request_id_value(101));
        let id = started
            .last()
            .and_then(|it| it["result"]["thread"]["id"].as_str());
        client.thread = id.expect("a thread").to_owned();
        client
    }

    /// The folder of its thread.
    fn work(&self) -> std::path::PathBuf {
        self.server.home().join("work")
    }

    fn ask(&mut self, method: &str, params: Value) {
        self.last_id += 1;
        let request = json!({ "id": self.last_id, "method": method, "params": params });
        self.pipes.send(request.to_string().as_bytes());
    }

    /// Returns every message up to the first that matches.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.pipes.receive();
            let is_last = is_it(&message);
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    /// Runs a turn. Returns all its messages, and its final form. The end of any other turn is a
    /// failure.
    fn turn(&mut self, params: &Value) -> (Vec<Value>, Value) {
        let mut params = params.clone();
        params["threadId"] = self.thread.as_str().into();
        self.ask("turn/start", params);
        let request_id = request_id_value(self.last_id);
        let messages = self.until(|it| it["method"] == "turn/completed");
        let turn = messages.last().expect("an end")["params"]["turn"].clone();
        let answer = messages.iter().find(|it| it["id"] == request_id);
        let answer = answer.expect("an answer before the end");
        assert_eq!(answer["result"]["turn"]["id"], turn["id"], "{messages:?}");
        (messages, turn)
    }

    /// Runs turns in so many new threads concurrently, each of which must complete.
    fn turns(&mut self, threads: usize) {
        let mut ids = Vec::new();
        for _ in 0..threads {
            self.ask("thread/start", json!({ "cwd": self.work() }));
            let request_id = request_id_value(self.last_id);
            let started = self.until(|it| it["id"] == request_id);
            ids.push(started.last().expect("an answer")["result"]["thread"]["id"].clone());
        }
        for id in ids {
            let input = json!([{ "type": "text", "text": "hello" }]);
            self.ask("turn/start", json!({ "threadId": id, "input": input }));
        }
        for _ in 0..threads {
            let messages = self.until(|it| it["method"] == "turn/completed");
            let turn = &messages.last().expect("an end")["params"]["turn"];
            assert_eq!(turn["status"], "completed", "{turn}");
        }
    }

    fn say(&mut self, text: &str) -> (Vec<Value>, Value) {
        self.turn(&json!({ "input": [{ "type": "text", "text": text }] }))
    }
}

fn request_id_value(id: u64) -> Value {
    id.into()
}

#[test]
fn a_turn_without_a_script_echoes_its_input() {
    let mut client = MockClient::start("", &[]);
    let (_, turn) = client.say("hello loom");
    assert_eq!(turn["status"], "completed", "{turn}");
    let text = turn["items"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("You said: hello loom\n"), "{turn}");
}

#[test]
fn every_fault_ends_its_turn_once_and_typed() {
    // The tests with a paused clock show that it ends in time.
    let settings = [
        "stream_idle_timeout_ms=2000",
        "stream_max_retries=0",
        "request_max_retries=0",
    ];
    let mut client = MockClient::start("", &settings);
    let disconnected = json!({ "responseStreamDisconnected": { "httpStatusCode": null } });
    let unreachable = json!({ "httpConnectionFailed": { "httpStatusCode": null } });
    for (fault, expected) in [
        ("stall", &disconnected),
        ("mute", &disconnected),
        ("keep-alive", &disconnected),
        ("cut", &disconnected),
        ("reset", &disconnected),
        ("garbage", &disconnected),
        ("content-type", &disconnected),
        ("empty", &disconnected),
        ("hang-up", &unreachable),
        ("429", &json!("rateLimitExceeded")),
        ("429 retry_after=9", &json!("rateLimitExceeded")),
        ("500", &json!("internalServerError")),
        ("529", &json!("serverOverloaded")),
        ("refused", &json!("unauthorized")),
        ("quota", &json!("usageLimitExceeded")),
    ] {
        let (_, turn) = client.say(&format!("MOCK {fault}"));
        assert_eq!(turn["status"], "failed", "{fault}: {turn}");
        assert_eq!(
            turn["error"]["codexErrorInfo"], *expected,
            "{fault}: {turn}"
        );
    }
    let (_, turn) = client.say("MOCK text say=fine");
    assert_eq!(turn["items"][0]["text"], "fine", "{turn}");
}

#[test]
fn transient_failures_are_retried_and_reported() {
    let script = "[[answer]]\nsteps = [{ fault = '529' }]\n[[answer]]\nsteps = [{ text = 'half' }, { fault = 'cut' }]\n\
                  [[answer]]\nsteps = [{ text = 'whole' }]";
    let mut client = MockClient::start(script, &[]);
    let (messages, turn) = client.say("go on");
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(turn["items"][0]["text"], "whole", "{turn}");
    let retries: Vec<_> = messages
        .iter()
        .filter(|it| it["method"] == "error")
        .map(|it| it["params"]["willRetry"].clone())
        .collect();
    assert_eq!(retries, [true, true], "{messages:?}");
}

#[test]
fn a_title_fits_its_schema() {
    let mut client = MockClient::start("", &[]);
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } },
        "required": ["title"], "additionalProperties": false });
    let input = json!([{ "type": "text", "text": "mend the loom" }]);
    let (_, turn) = client.turn(&json!({ "outputSchema": schema, "input": input }));
    assert_eq!(
        turn["items"][0]["text"], r#"{"title":"mend the loom"}"#,
        "{turn}"
    );
}

#[test]
fn injected_items_are_sent_unchanged_in_the_next_request() {
    let mut client = MockClient::start("", &[]);
    let items = json!([
        { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "be brief" }] },
        { "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": "what" },
            { "type": "input_text", "text": " is this?" },
        ] },
        { "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\":1}" },
        { "type": "function_call_output", "call_id": "c1", "output": "a loom" },
        { "type": "message", "role": "assistant", "content": "A loom." },
    ]);
    let thread = client.thread.clone();
    client.ask(
        "thread/inject_items",
        json!({ "threadId": thread, "items": items }),
    );
    let (_, turn) = client.say("whose?");
    assert_eq!(turn["status"], "completed", "{turn}");
    let requests = client.mock.request_bodies();
    let input = requests[0]["input"].as_array().expect("input");
    assert_eq!(input[..5], items.as_array().expect("items")[..]);
    assert_eq!(
        input.last().expect("a question")["content"][0]["text"],
        "whose?"
    );
}

#[test]
fn errors_of_the_mock_are_reported() {
    let home = TempDir::new().expect("a home");
    for (arguments, expected) in [
        (&["--listen", "0.0.0.0:0"][..], "add --insecure-any-address"),
        (
            &["--script", "/nowhere/script.toml"][..],
            "cannot read /nowhere/script.toml",
        ),
    ] {
        let mut command = command(home.path());
        let output = command
            .arg("mock")
            .args(arguments)
            .output()
            .expect("to run");
        assert!(!output.status.success());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(expected), "{stderr}");
    }
}
