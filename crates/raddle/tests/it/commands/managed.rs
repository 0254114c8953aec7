//! The operator's rules apply to commands that clients run themselves.

use serde_json::json;
use tempfile::TempDir;

use super::{answer, exec};
use crate::support::request;
use crate::support::server::TestServer;
use crate::support::websocket::Websocket;

const LISTEN_ARGS: [&str; 3] = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];

const POLICY: &str = r#"
allowed_sandbox_modes = ["read-only", "workspace-write"]

[[rule]]
command = ["mkfifo"]
verdict = "deny"
reason = "no pipes here"
"#;

/// Each request is rejected with the rule that denies it; the last one runs.
#[test]
fn the_operators_rules_apply_to_clients() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).expect("a file");
    let setup = format!("export RADDLE_MANAGED_POLICY={}", file.display());
    let server = TestServer::start_under(&setup, &LISTEN_ARGS);
    let mut client = Websocket::connect(server.address());
    let hello = json!({
        "clientInfo": {"name": "it", "version": "0"}, "capabilities": {"experimentalApi": true},
    });
    client.send(&request("hello", "initialize", hello));
    answer(&mut client);
    let start = json!({"cwd": folder.path(), "ephemeral": true, "sandbox": "read-only"});
    client.send(&request("start", "thread/start", start));
    let thread = answer(&mut client)["result"]["thread"]["id"].clone();
    let sandboxed = json!({"sandboxPolicy": {"type": "readOnly"}, "cwd": folder.path()});
    let open =
        "does not allow the sandbox danger-full-access; choose one of: read-only, workspace-write";
    let denied = "the managed rule `command mkfifo` forbids it; no pipes here";
    let spawn = json!({"command": ["true"], "cwd": "/", "processHandle": "p"});
    let line = json!({"threadId": thread, "command": "true"});
    for (sent, expected) in [
        (exec("open", "true", json!({})), open),
        (request("spawn", "process/spawn", spawn), open),
        (request("line", "thread/shellCommand", line), open),
        (
            exec("denied", "env -u A mkfifo p", sandboxed.clone()),
            denied,
        ),
        (exec("runs", "true", sandboxed), ""),
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

/// The operator allows only sandboxes. A client writes a key command into the configuration, which
/// a turn would run without a sandbox.
#[test]
fn the_operators_rules_apply_to_key_commands() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("policy.toml");
    let marker = folder.path().join("ran");
    let only = "allowed_sandbox_modes = ['read-only']\n";
    let forbids = "[[rule]]\ncommand = ['sh']\nverdict = 'deny'\n";
    for (policy, why) in [
        (only, "does not allow the sandbox danger-full-access"),
        (forbids, "the managed rule `command sh` forbids it"),
    ] {
        std::fs::write(&file, policy).expect("a file");
        let setup = format!("export RADDLE_MANAGED_POLICY={}", file.display());
        let mut server = TestServer::start_under(&setup, &[]);
        let mut pipes = server.pipes();
        pipes.hello();
        let edit = |key: &str, value: serde_json::Value| json!({"keyPath": key, "value": value, "mergeStrategy": "upsert"});
        let auth = json!({
            "command": "sh", "args": ["-c", format!("echo x > {}; echo k", marker.display())],
        });
        let edits = json!([
            edit("model", json!("y/m")),
            edit("model_providers.y.base_url", json!("http://127.0.0.1:9/v1")),
            edit("model_providers.y.auth", auth),
        ]);
        // The client that started the server may write it; only the operator's rules prevent that
        // it runs.
        let start = json!({"cwd": folder.path(), "sandbox": "read-only"});
        let mut result = json!(null);
        for (id, method, params) in [
            ("write", "config/batchWrite", json!({"edits": edits})),
            ("list", "model/list", json!({})),
            ("start", "thread/start", start),
        ] {
            pipes.send(&request(id, method, params));
            result = loop {
                let message = pipes.receive();
                if message["id"] == id {
                    assert_eq!(message["error"], json!(null));
                    break message["result"].clone();
                }
            };
        }
        let thread = result["thread"]["id"].clone();
        let input = json!([{"type": "text", "text": "hello"}]);
        let turn = json!({"threadId": thread, "input": input});
        pipes.send(&request("turn", "turn/start", turn));
        let ended = loop {
            let message = pipes.receive();
            if message["method"] == "turn/completed" {
                break message;
            }
        };
        assert!(!marker.exists(), "{ended}");
        let error = ended["params"]["turn"]["error"]["message"].to_string();
        assert!(error.contains(why), "{ended}");
        server.stop();
    }
}

/// A client on a socket may write the configuration, but not programs, addresses for keys or
/// prices, unless the operator allows it.
#[test]
fn a_remote_client_names_no_programs() {
    let table = json!({"command": "sh"});
    for allowed in [false, true] {
        let setting = ["-c", "remote_clients_set_programs=true"];
        let more = if allowed { &setting[..] } else { &[] };
        let server = TestServer::start_under(":", &[&LISTEN_ARGS[..], more].concat());
        let mut client = server.client();
        for (key, value, is_plain) in [
            ("model", json!("y/m"), true),
            ("tui.theme", json!("dark"), true),
            ("profiles.a.model", json!("y/m"), true),
            ("model_providers.y.auth.command", json!("sh"), false),
            ("model_providers.y.auth", table.clone(), false),
            ("model_providers.y", json!({"auth": table}), false),
            ("model_providers", json!({"y": {"auth": table}}), false),
            (
                "model_providers.y.base_url",
                json!("http://127.0.0.1:9"),
                false,
            ),
            ("model_providers.y.env_key", json!("AWS_SECRET"), false),
            ("model_providers.y.key_file", json!("/etc/shadow"), false),
            (
                "model_providers.y.env_http_headers",
                json!({"x": "HOME"}),
                false,
            ),
            ("sandbox_bwrap_path", json!("/tmp/bwrap"), false),
            ("allow_login_shell", json!(true), false),
            ("shell_environment_policy.set.A", json!("x"), false),
            ("mcp_servers.y.command", json!("sh"), false),
            ("mcp_servers.y.url", json!("http://127.0.0.1:9"), false),
            ("mcp_servers.y.network", json!(true), false),
            ("mcp_servers.y.sandbox", json!(false), false),
            ("mcp_servers.y.env.A", json!("x"), false),
            (
                "mcp_servers.y.tools.t.approval_mode",
                json!("approve"),
                false,
            ),
            ("\"mcp_servers\".\"y\"", table.clone(), false),
            ("mcp_servers", json!({"y": table}), false),
            (
                "prices",
                json!([{"provider": "y", "model": "*", "input": 0, "output": 0}]),
                false,
            ),
            ("remote_clients_set_programs", json!(true), false),
            ("hooks.state.y.trusted_hash", json!("sha256:0"), false),
        ] {
            let edit = json!({"keyPath": key, "value": value, "mergeStrategy": "replace"});
            for sent in [
                request("write", "config/value/write", edit.clone()),
                request("write", "config/batchWrite", json!({"edits": [edit]})),
            ] {
                client.send(&sent);
                let answered = answer(&mut client);
                let is_written = answered["result"]["version"].is_string();
                assert_eq!(is_written, allowed || is_plain, "{key}: {answered}");
                if !is_written {
                    let why = answered["error"]["message"].as_str().unwrap_or_default();
                    assert!(why.contains("remote_clients_set_programs"), "{answered}");
                    let names_command = why.contains("raddle hooks trust");
                    assert_eq!(names_command, key.starts_with("hooks"), "{answered}");
                }
            }
        }
        server.stop();
    }
}

/// The `config` of a request applies to its thread, and starts no programs.
#[test]
fn the_config_of_a_request_names_no_programs() {
    let folder = TempDir::new().expect("a folder");
    let marker = folder.path().join("ran");
    let script = format!("echo x > {}; echo k", marker.display());
    let provider = json!({
        "base_url": "http://127.0.0.1:9/v1", "auth": {"command": "sh", "args": ["-c", script]},
    });
    let mut server = TestServer::start_under(":", &[]);
    let mut pipes = server.pipes();
    pipes.hello();
    let config = json!({"model_providers": {"y": provider}});
    let start = json!({
        "cwd": folder.path(), "model": "m", "modelProvider": "y", "config": config,
    });
    pipes.send(&request("start", "thread/start", start));
    let started = loop {
        let message = pipes.receive();
        if message["id"] == "start" {
            break message;
        }
    };
    let input = json!([{"type": "text", "text": "hello"}]);
    let turn = json!({"threadId": started["result"]["thread"]["id"], "input": input});
    pipes.send(&request("turn", "turn/start", turn));
    let ended = loop {
        let message = pipes.receive();
        if message["method"] == "turn/completed" || message["error"].is_object() {
            break message;
        }
    };
    let why = "the model provider `y` has no base_url";
    assert!(ended.to_string().contains(why), "{ended}");
    assert!(!marker.exists(), "{ended}");
    server.stop();
}
