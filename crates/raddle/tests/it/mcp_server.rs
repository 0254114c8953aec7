//! `raddle mcp-server` as an MCP client sees it, against `raddle mock`.

mod approvals;
mod elicitations;
mod ends;
mod protocol;

use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::MockModel;
use crate::support::eventually;
use crate::support::server::command;
use crate::support::stdio::Pipes;

/// A model that starts its answer and never completes it.
const HELD: &str = "[[answer]]\nsteps = [{ text = \"half\" }, { held = true }]\n";

/// A home, a folder to work in, and a model.
struct McpHarness {
    home: TempDir,
    work: TempDir,
    mock: MockModel,
}

impl McpHarness {
    fn new(script: &str) -> Self {
        Self {
            home: TempDir::new().expect("a home"),
            work: TempDir::new().expect("a folder"),
            mock: MockModel::start(script),
        }
    }

    /// Starts the server in the folder, without a word of MCP.
    fn spawn(&self) -> McpSession {
        let mut server = command(self.home.path());
        server
            .arg("mcp-server")
            .args(self.mock.arguments(&[]))
            .current_dir(self.work.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stderr(Stdio::inherit());
        let mut child = server.spawn().expect("the binary starts");
        let pipes = Pipes::of(&mut child);
        McpSession {
            child,
            pipes,
            last_id: 0,
            others: Vec::new(),
        }
    }

    /// Starts the server, and initializes it as a client with these capabilities.
    fn start(&self, capabilities: Value) -> McpSession {
        let mut session = self.spawn();
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": { "name": "it", "version": "0" },
        });
        let answer = session.ask("initialize", params);
        assert!(answer["result"].is_object(), "{answer}");
        session.notify("notifications/initialized", json!({}));
        session
    }

    fn wait_until_held(&self, count: u64) {
        eventually("the held answers", || {
            (self.mock.request_log()["held"] == count).then_some(())
        });
    }

    /// The output of `raddle thread` with these arguments.
    fn thread(&self, words: &[&str]) -> String {
        let mut thread = command(self.home.path());
        let output = thread.arg("thread").args(words).output().expect("started");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The only thread of the home.
    fn only_thread(&self) -> String {
        let page = self.thread(&["list", "--json"]);
        let page: Value = serde_json::from_str(&page).expect("JSON");
        let threads = page["data"].as_array().expect("threads");
        assert_eq!(threads.len(), 1, "{page}");
        threads[0]["id"].as_str().expect("an id").to_owned()
    }
}

/// A running server and its client. It ends on drop.
struct McpSession {
    child: Child,
    pipes: Pipes,
    last_id: u64,
    /// Messages that were not waited for.
    others: Vec<Value>,
}

impl McpSession {
    fn send(&mut self, message: &Value) {
        self.pipes.send(message.to_string().as_bytes());
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request, and returns its id.
    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.response(id)
    }

    /// Calls a tool, and returns the id of the request.
    fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.request(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Waits for the response to a request.
    fn response(&mut self, id: u64) -> Value {
        self.until(|it| it["id"] == id && it.get("method").is_none())
    }

    /// Waits for the result of a call.
    fn result(&mut self, id: u64) -> Value {
        let response = self.response(id);
        assert!(response["result"].is_object(), "{response}");
        response["result"].clone()
    }

    /// Waits for a form.
    fn form(&mut self) -> Value {
        self.until(|it| it["method"] == "elicitation/create")
    }

    fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.pipes.receive();
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            if is_wanted(&message) {
                return message;
            }
            self.others.push(message);
        }
    }

    /// Closes stdin. Returns the exit status, and the messages that still came.
    fn close(mut self) -> (Option<i32>, Vec<Value>) {
        self.pipes.close();
        let mut rest = std::mem::take(&mut self.others);
        while let Some(message) = self.pipes.next() {
            rest.push(message);
        }
        (self.child.wait().expect("an end").code(), rest)
    }
}

impl Drop for McpSession {
    fn drop(&mut self) {
        // Its server ends with it.
        self.pipes.close();
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// The text of a result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}
