//! Tools of MCP servers in a turn: their approval, and the questions that they ask.

use std::fs;
use std::path::Path;

use super::*;

/// An MCP server on stdio, in Python.
const SERVER: &str = include_str!("../exec/mcp_server.py");

/// A model that waits for the MCP server, and calls a tool of it with arguments for this folder.
fn harness(tool: &str, arguments: impl Fn(&Path) -> String) -> McpHarness {
    let (home, work) = (TempDir::new().expect("a home"), TempDir::new());
    let work = work.expect("a folder");
    let arguments = arguments(work.path());
    let mock = MockModel::start(&format!(
        "[[answer]]\nmatch = 'weave'\nsteps = [{{ text = 'Woven.' }}]\n\
         [[answer]]\nmatch = 'go'\nsteps = [{{ call = 'wait_for_mcp_servers', arguments = {{}} }}]\n\
         [[answer]]\nmatch = 'connected'\n\
         steps = [{{ call = 'mcp__demo__{tool}', arguments = {{ {arguments} }} }}]\n\
         [[answer]]\nsteps = [{{ text = 'Done.' }}]"
    ));
    let text = format!("[mcp_servers.demo]\ncommand = 'python3'\nargs = ['-c', '''{SERVER}''']\n");
    fs::write(home.path().join("config.toml"), text).expect("a configuration");
    McpHarness { home, work, mock }
}

/// A model that calls the tool `ask`, which asks for a colour.
fn asking() -> McpHarness {
    harness("ask", |_| String::new())
}

/// Arguments of a call that may ask the user.
fn arguments(prompt: &str) -> Value {
    json!({ "prompt": prompt, "approval-policy": "on-request", "sandbox": "workspace-write" })
}

/// The input of the last request to the model, which has the result of the tool.
fn last_input(harness: &McpHarness) -> String {
    let request = harness.mock.request_bodies().pop().expect("a request");
    request["input"].to_string()
}

#[test]
fn a_question_of_an_mcp_server_reaches_the_user() {
    let amber = json!({ "colour": "amber" });
    for (result, expected) in [
        (
            json!({ "action": "accept", "content": amber }),
            &["accept", "amber"][..],
        ),
        (json!({ "action": "decline" }), &["decline"]),
        (json!({ "action": "cancel" }), &["cancel"]),
        // This client cannot answer, and there is no other.
        (json!({ "decision": "approved" }), &["decline"]),
    ] {
        let harness = asking();
        let mut session = harness.start(json!({ "elicitation": {} }));
        let id = session.call("codex", arguments("go"));
        let form = session.form();
        let params = &form["params"];
        let message = "The MCP server demo asks:\n\nWhich colour?";
        assert_eq!(params["message"], message, "{form}");
        let field = &params["requestedSchema"]["properties"]["colour"];
        assert_eq!(field["type"], "string", "{form}");
        session.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": result }));
        assert_eq!(text(&session.result(id)), "Done.", "{result}");
        let input = last_input(&harness);
        for word in expected {
            assert!(input.contains(word), "{word} after {result}: {input}");
        }
    }
}

#[test]
fn a_question_that_no_client_can_show_is_declined() {
    let harness = asking();
    let mut session = harness.start(json!({}));
    let id = session.call("codex", arguments("go"));
    assert_eq!(text(&session.result(id)), "Done.");
    assert_eq!(session.others, Vec::<Value>::new());
    assert!(last_input(&harness).contains("decline"));
}

#[test]
fn another_client_of_the_thread_answers_if_the_mcp_client_cannot() {
    let harness = asking();
    let mut session = harness.start(json!({}));
    let id = session.call("codex", arguments("weave"));
    let thread = session.result(id)["structuredContent"]["threadId"].clone();

    let mut server = command(harness.home.path());
    server
        .arg("app-server")
        .args(harness.mock.arguments(&[]))
        .stderr(Stdio::inherit());
    let mut other = server.spawn().expect("the binary starts");
    let mut pipes = Pipes::of(&mut other);
    pipes.hello();
    let resume = json!({ "id": 1, "method": "thread/resume", "params": { "threadId": thread } });
    pipes.send(resume.to_string().as_bytes());
    while pipes.receive()["id"] != 1 {}

    let id = session.call("codex-reply", json!({ "prompt": "go", "threadId": thread }));
    let question = loop {
        let message = pipes.receive();
        if message["method"] == "mcpServer/elicitation/request" {
            break message;
        }
    };
    let accepted = json!({ "action": "accept", "content": { "colour": "amber" }, "_meta": null });
    let answer = json!({ "id": question["id"], "result": accepted });
    pipes.send(answer.to_string().as_bytes());
    assert_eq!(text(&session.result(id)), "Done.");
    assert!(last_input(&harness).contains("amber"));
    pipes.close();
    other.wait().expect("an end");
}

#[test]
fn a_tool_of_an_mcp_server_is_approved_like_a_command() {
    let decision = |word: &str| json!({ "action": "accept", "content": { "decision": word } });
    for (result, is_made) in [
        (decision("accept"), true),
        (decision("acceptForSession"), true),
        (decision("decline"), false),
        (decision("other"), false),
        (json!({ "action": "cancel" }), false),
        // As clients of Codex answer.
        (json!({ "decision": "approved" }), true),
        (json!({ "decision": "denied" }), false),
    ] {
        let harness = harness("write", |work| format!("path = '{}/made'", work.display()));
        let mut session = harness.start(json!({ "elicitation": {} }));
        let id = session.call("codex", arguments("go"));
        let form = session.form();
        let message = form["params"]["message"].as_str().unwrap_or_default();
        let is_about_tool = message.starts_with("Call this tool?\n\nMay the tool");
        assert!(is_about_tool, "{form}");
        session.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": result }));
        assert_eq!(text(&session.result(id)), "Done.", "{result}");
        let made = harness.work.path().join("made");
        assert_eq!(made.exists(), is_made, "{result}: {}", last_input(&harness));
    }
}
