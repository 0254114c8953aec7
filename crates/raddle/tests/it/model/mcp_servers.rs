//! MCP servers as clients see them: the rules for their calls, and the limits of observers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::server::TestServer;
use crate::support::stdio::Pipes;

/// Writes a configuration with one server named `demo`. The home is hidden from MCP servers, so the
/// program is an argument.
fn configure(home: &Path) {
    let program = include_str!("../exec/mcp_server.py");
    let text = format!("[mcp_servers.demo]\ncommand = 'python3'\nargs = ['-c', '''{program}''']\n");
    fs::write(home.join("config.toml"), text).expect("a configuration");
}

/// Returns the response to a request, and skips the notifications before it.
fn answer(pipes: &mut Pipes, method: &str, params: Value) -> Value {
    let request = json!({ "id": method, "method": method, "params": params });
    pipes.send(request.to_string().as_bytes());
    loop {
        let message = pipes.receive();
        if message["id"] == method {
            return message;
        }
    }
}

#[test]
fn rules_and_limits_bind_the_calls_of_clients() {
    let folder = TempDir::new().expect("a folder");
    let policy = folder.path().join("policy.toml");
    fs::write(&policy, "").expect("a file");
    let variable = policy.display().to_string();
    // The home lies in `/tmp`, which would be writable.
    let arguments = [
        "-c",
        "sandbox_workspace_write.exclude_slash_tmp=true",
        "-c",
        "sandbox_workspace_write.exclude_tmpdir_env_var=true",
    ];
    let mut server = TestServer::start_with(&arguments, &[("RADDLE_MANAGED_POLICY", &variable)]);
    let (home, mut pipes) = (server.home().to_owned(), server.pipes());
    pipes.hello();
    let (work, other) = (home.join("work"), home.join("other"));
    let mut threads = Vec::new();
    for cwd in [&work, &other] {
        fs::create_dir(cwd).expect("a folder");
        let start = json!({ "cwd": cwd, "sandbox": "workspace-write" });
        let started = answer(&mut pipes, "thread/start", start);
        threads.push(started["result"]["thread"]["id"].clone());
    }
    configure(&home);
    // Reads the configuration again.
    let of_first = json!({ "threadId": threads[0] });
    answer(&mut pipes, "mcpServerStatus/list", of_first);
    let mut call = || {
        let params = json!({
            "threadId": threads[0], "server": "demo", "tool": "add",
            "arguments": { "a": 2, "b": 3 },
        });
        let answered = answer(&mut pipes, "mcpServer/tool/call", params);
        let text = &answered["result"]["content"][0]["text"];
        let text = text.as_str().or(answered["error"]["message"].as_str());
        text.unwrap_or_default().to_owned()
    };
    assert_eq!(call(), "5");
    let rules = home.join("rules.toml");
    for tool in ["demo.*", "mcp__demo__add"] {
        let rule = format!("[[rule]]\ntool = '{tool}'\nverdict = 'deny'\n");
        fs::write(&rules, rule).expect("rules");
        let refused = call();
        let expected = format!("the rule `tool {tool}` forbids it");
        assert!(refused.contains(&expected), "{refused}");
    }
    fs::remove_file(&rules).expect("removed");

    // The threads were started before the operator allowed less.
    fs::write(&policy, "allowed_sandbox_modes = ['read-only']\n").expect("a file");
    let refused = call();
    let expected = "does not allow the sandbox workspace-write";
    assert!(refused.contains(expected), "{refused}");
    let listed = answer(
        &mut pipes,
        "mcpServerStatus/list",
        json!({ "threadId": threads[1] }),
    );
    let status = &listed["result"]["data"][0];
    let error = status["toolsError"].as_str().unwrap_or_default();
    assert!(error.contains(expected), "a new server: {listed}");
}

/// An observer sees the servers of the threads that it follows, and starts none.
#[test]
fn an_observer_starts_no_server() {
    let mut server = TestServer::start(&[]);
    configure(server.home());
    let mut pipes = server.pipes();
    let params = json!({
        "clientInfo": { "name": "test", "version": "1" },
        "capabilities": { "extensions": { "raddle/roles": { "role": "observer" } } },
    });
    let hello = answer(&mut pipes, "initialize", params);
    assert!(hello["result"].is_object(), "{hello}");
    let listed = answer(&mut pipes, "mcpServerStatus/list", json!({}));
    assert_eq!(listed["result"]["data"], json!([]), "{listed}");
}

#[test]
fn no_client_logs_in_while_the_network_is_off() {
    let folder = TempDir::new().expect("a folder");
    let policy = folder.path().join("policy.toml");
    fs::write(&policy, "network = false\n").expect("a file");
    let variable = policy.display().to_string();
    let arguments = ["-c", "mcp_servers.web.url='http://127.0.0.1:9/mcp'"];
    let mut server = TestServer::start_with(&arguments, &[("RADDLE_MANAGED_POLICY", &variable)]);
    let mut pipes = server.pipes();
    pipes.hello();
    let refused = answer(
        &mut pipes,
        "mcpServer/oauth/login",
        json!({ "name": "web" }),
    );
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("the managed policy keeps the network off"),
        "{refused}"
    );
}
