//! Tools of MCP servers, as clients see them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{MockClient, MockModel};

/// A server on stdio, in Python.
const SERVER: &str = include_str!("mcp_progress.py");

/// A client whose server has an MCP server named `demo`, and a model that calls its tool `count`.
fn client() -> MockClient {
    let mock = MockModel::start(
        "[[answer]]\nmatch = 'go'\nsteps = [{ call = 'wait_for_mcp_servers', arguments = {} }]\n\
         [[answer]]\nmatch = 'connected'\nsteps = [{ call = 'mcp__demo__count', arguments = {} }]\n\
         [[answer]]\nsteps = [{ text = 'Done.' }]",
    );
    let mut arguments = mock.arguments(&[]);
    // The folder of the thread lies in the home, which is hidden unless it is a workspace.
    for setting in [
        "sandbox_mode=workspace-write",
        "mcp_servers.demo.command='python3'",
        &format!("mcp_servers.demo.args=['-c', '''{SERVER}''']"),
        "mcp_servers.demo.default_tools_approval_mode='approve'",
    ] {
        arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }
    MockClient::of(mock, &arguments)
}

#[test]
fn progress_of_a_tool_reaches_clients_at_a_limited_rate() {
    let mut client = client();
    let (messages, turn) = client.say("go");
    assert_eq!(turn["status"], "completed", "{turn}");
    let is_call = |it: &Value| it["params"]["item"]["type"] == "mcpToolCall";
    let position = |method: &str| {
        let is_it = |it: &Value| it["method"] == method && is_call(it);
        messages.iter().position(is_it).expect("the item")
    };
    let (started, completed) = (position("item/started"), position("item/completed"));
    let item = &messages[started]["params"]["item"]["id"];
    let mut steps: Vec<u32> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message["method"] != "item/mcpToolCall/progress" {
            continue;
        }
        let params = &message["params"];
        assert!(started < at && at < completed, "{messages:?}");
        assert_eq!(params["threadId"], client.thread.as_str());
        assert_eq!((&params["turnId"], &params["itemId"]), (&turn["id"], item));
        let text = params["message"].as_str().expect("a text");
        let step = text.strip_prefix("step ").and_then(|it| it.parse().ok());
        steps.push(step.unwrap_or_else(|| panic!("{text:?}")));
    }
    assert!(!steps.is_empty() && steps.len() < 200, "{}", steps.len());
    assert!(steps.is_sorted(), "{steps:?}");
    assert!(steps.iter().all(|it| *it <= 1000), "{steps:?}");
}

/// The wait lasts up to 30 s, unless the turn is interrupted.
#[test]
fn an_interrupt_ends_the_wait_for_servers() {
    let mock =
        MockModel::start("[[answer]]\nsteps = [{ call = 'wait_for_mcp_servers', arguments = {} }]");
    let mut arguments = mock.arguments(&[]);
    // It never answers.
    for setting in [
        "sandbox_mode=workspace-write",
        "mcp_servers.mute.command='tail'",
        "mcp_servers.mute.args=['-f', '/dev/null']",
        "mcp_servers.mute.startup_timeout_sec=600",
    ] {
        arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }
    let mut client = MockClient::of(mock, &arguments);
    let input = json!([{ "type": "text", "text": "go" }]);
    let start = json!({ "threadId": client.thread, "input": input });
    client.ask("turn/start", start);
    let is_wait = |it: &Value| {
        let item = &it["params"]["item"];
        it["method"] == "item/started" && item["tool"] == "wait_for_mcp_servers"
    };
    let messages = client.until(is_wait);
    let turn = &messages.last().expect("an item")["params"]["turnId"];
    let began = Instant::now();
    let interrupt = json!({ "threadId": client.thread, "turnId": turn });
    client.ask("turn/interrupt", interrupt);
    let messages = client.until(|it| it["method"] == "turn/completed");
    let ended = &messages.last().expect("an end")["params"]["turn"];
    assert_eq!(ended["status"], "interrupted", "{messages:?}");
    let elapsed = began.elapsed();
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
}
