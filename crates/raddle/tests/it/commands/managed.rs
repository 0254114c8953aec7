//! What the operator holds fast, for commands that clients run themselves.

use serde_json::json;
use tempfile::TempDir;

use super::{answer, exec};
use crate::support::request;
use crate::support::server::Server;
use crate::support::websocket::Websocket;

const DOOR: [&str; 3] = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];

const POLICY: &str = r#"
allowed_sandbox_modes = ["read-only", "workspace-write"]

[[rule]]
command = ["mkfifo"]
verdict = "deny"
reason = "no pipes here"
"#;

/// Each is refused with what says no; the last one runs.
#[test]
fn the_operator_holds_clients_too() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).expect("a file");
    let setup = format!("export RADDLE_MANAGED_POLICY={}", file.display());
    let server = Server::start_under(&setup, &DOOR);
    let mut client = Websocket::connect(server.address());
    let hello = json!({
        "clientInfo": {"name": "it", "version": "0"}, "capabilities": {"experimentalApi": true},
    });
    client.send(&request("hello", "initialize", hello));
    answer(&mut client);
    let start = json!({"cwd": folder.path(), "ephemeral": true, "sandbox": "read-only"});
    client.send(&request("start", "thread/start", start));
    let thread = answer(&mut client)["result"]["thread"]["id"].clone();
    let fenced = json!({"sandboxPolicy": {"type": "readOnly"}, "cwd": folder.path()});
    let open =
        "does not allow the sandbox danger-full-access; choose one of: read-only, workspace-write";
    let denied = "the managed rule `command mkfifo` forbids it; no pipes here";
    let spawn = json!({"command": ["true"], "cwd": "/", "processHandle": "p"});
    let line = json!({"threadId": thread, "command": "true"});
    for (sent, expected) in [
        (exec("open", "true", json!({})), open),
        (request("spawn", "process/spawn", spawn), open),
        (request("line", "thread/shellCommand", line), open),
        (exec("denied", "env -u A mkfifo p", fenced.clone()), denied),
        (exec("runs", "true", fenced), ""),
    ] {
        client.send(&sent);
        let answered = answer(&mut client);
        let why = answered["error"]["message"].as_str().unwrap_or_default();
        assert!(why.contains(expected), "{answered}");
        assert_eq!(
            answered["result"]["exitCode"] == 0,
            expected.is_empty(),
            "{answered}"
        );
    }
    server.stop();
}
