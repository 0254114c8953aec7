//! Client tools: the server is killed while it waits for one.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::MockModel;
use crate::support::server::command;
use crate::support::stdio::Pipes;

const SCRIPT: &str = "[[answer]]\nmatch = 'how is the cloth'\nsteps = [{ call = 'look', arguments = { at = 'it' } }]\n\
                      [[answer]]\nmatch = 'torn'\nsteps = [{ text = 'Mend it.' }]";

/// A server on a home that outlives it, killed on drop as in a power failure.
struct KillableServer {
    child: Child,
    pipes: Pipes,
    last_id: u64,
}

impl Drop for KillableServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl KillableServer {
    fn start(home: &Path, mock: &MockModel, listen_args: &[&str]) -> Self {
        let base_url = format!("model_providers.mock.base_url={}", mock.base_url);
        let mut command = command(home);
        command.args([
            "app-server",
            "-c",
            "model=mock",
            "-c",
            "model_provider=mock",
        ]);
        command.args(["-c", &base_url]).args(listen_args);
        command.stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the binary starts");
        let pipes = Pipes::of(&mut child);
        let mut process = Self {
            child,
            pipes,
            last_id: 0,
        };
        let params = json!({
            "clientInfo": {"name": "test", "version": "1"}, "capabilities": {"experimentalApi": true},
        });
        process.ask("initialize", params);
        process
    }

    /// Sends a request, and reads all messages up to its response.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let request = json!({"id": self.last_id, "method": method, "params": params});
        self.pipes.send(request.to_string().as_bytes());
        let id = Value::from(self.last_id);
        let answer = self.until(|it| it["id"] == id && it["method"].is_null());
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.pipes.receive();
            if is_it(&message) {
                return message;
            }
        }
    }
}

/// A server with other listeners continues its pending call; a child on stdio alone interrupts the
/// turn.
#[test]
fn a_pending_tool_call_survives_a_server_crash() {
    for goes_on in [true, false] {
        let mock = MockModel::start(SCRIPT);
        let home = TempDir::new().expect("a home");
        let socket = format!("unix://{}", home.path().join("door/s").display());
        let mut listen_args = vec!["--listen", "stdio://"];
        if goes_on {
            listen_args.extend(["--listen", &socket]);
        }
        let mut first = KillableServer::start(home.path(), &mock, &listen_args);
        let look = json!({"type": "function", "name": "look", "description": "Looks.", "inputSchema": {"type": "object"}});
        let params = json!({"cwd": home.path(), "dynamicTools": [look]});
        let thread = first.ask("thread/start", params)["thread"]["id"].clone();
        let input = json!([{"type": "text", "text": "how is the cloth?"}]);
        first.ask("turn/start", json!({"threadId": thread, "input": input}));
        let call = first.until(|it| it["method"] == "item/tool/call");
        assert_eq!(call["params"]["arguments"], json!({"at": "it"}));
        drop(first);

        let mut second = KillableServer::start(home.path(), &mock, &listen_args);
        let resumed = second.ask("thread/resume", json!({"threadId": thread}));
        let turn = &resumed["thread"]["turns"][0];
        if !goes_on {
            assert_eq!(turn["status"], "interrupted", "{turn}");
            let item = &turn["items"][1];
            assert_eq!(
                (&item["type"], &item["status"]),
                (&json!("dynamicToolCall"), &json!("failed"))
            );
            let why = item["contentItems"][0]["text"].as_str().unwrap_or_default();
            assert!(
                why.starts_with("The client was asked to run this"),
                "{item}"
            );
            continue;
        }
        assert_eq!(turn["status"], "inProgress", "{turn}");
        let again = second.until(|it| it["method"] == "item/tool/call");
        assert_eq!(
            (&again["id"], &again["params"]),
            (&call["id"], &call["params"])
        );
        let content = json!([{"type": "inputText", "text": "it is torn"}]);
        let answer =
            json!({"id": again["id"], "result": {"contentItems": content, "success": true}});
        second.pipes.send(answer.to_string().as_bytes());
        let ended = second.until(|it| it["method"] == "turn/completed");
        assert_eq!(
            ended["params"]["turn"]["items"][0]["text"], "Mend it.",
            "{ended}"
        );
    }
}
