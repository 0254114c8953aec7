//! The envelope, the revisions, the tools and their results.

use super::*;

#[test]
fn a_thread_is_started_and_continued() {
    let harness = McpHarness::new(
        "[[answer]]\nmatch = 'second'\nsteps = [{ text = 'Two.' }]\n\
         [[answer]]\nmatch = 'first'\nsteps = [{ text = 'One.' }]\n",
    );
    let mut session = harness.start(json!({}));
    let id = session.call("codex", json!({ "prompt": "first", "cwd": "." }));
    let result = session.result(id);
    assert_eq!((text(&result), &result["isError"]), ("One.", &json!(false)));
    let thread = result["structuredContent"]["threadId"].clone();
    assert_eq!(
        result["structuredContent"],
        json!({ "threadId": thread, "content": "One." })
    );

    for name in ["threadId", "conversationId"] {
        let id = session.call("codex-reply", json!({ "prompt": "second", name: thread }));
        let result = session.result(id);
        assert_eq!(text(&result), "Two.", "{result}");
        assert_eq!(result["structuredContent"]["threadId"], thread);
    }
    // The model read the whole conversation.
    let request = harness.mock.request_bodies().pop().expect("a call")["input"].to_string();
    assert!(request.contains("One."), "{request}");

    let (code, rest) = session.close();
    assert_eq!(code, Some(0), "{rest:?}");
    let shown = harness.thread(&["show", thread.as_str().expect("an id")]);
    assert!(
        shown.contains("first") && shown.contains("second"),
        "{shown}"
    );
}

#[test]
fn threads_run_side_by_side() {
    let harness = McpHarness::new(HELD.repeat(2).as_str());
    let mut session = harness.start(json!({}));
    session.call("codex", json!({ "prompt": "one" }));
    session.call("codex", json!({ "prompt": "two" }));
    harness.wait_until_held(2);
}

#[test]
fn the_revision_of_the_client_is_served() {
    let harness = McpHarness::new("");
    for (asked, served) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1", "2025-11-25"),
    ] {
        let mut session = harness.spawn();
        // Clients of later revisions try this first.
        let probe = session.ask("server/discover", json!({}));
        assert_eq!(probe["error"]["code"], -32601, "{probe}");
        let early = session.ask("tools/list", json!({}));
        assert_eq!(early["error"]["code"], -32600, "{early}");
        let params = json!({ "protocolVersion": asked, "capabilities": {} });
        let result = session.ask("initialize", params)["result"].clone();
        assert_eq!(result["protocolVersion"], served);
        assert_eq!(result["serverInfo"]["name"], "raddle");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
    }
}

#[test]
fn the_tools_have_the_names_and_arguments_of_codex() {
    let harness = McpHarness::new("");
    let mut session = harness.start(json!({}));
    let tools = session.ask("tools/list", json!({}))["result"]["tools"].clone();
    let arguments = |tool: &Value| {
        let properties = tool["inputSchema"]["properties"].as_object();
        let names = properties.expect("properties").keys();
        names.map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(tools[0]["name"], "codex");
    assert_eq!(
        arguments(&tools[0]),
        "prompt cwd model sandbox approval-policy base-instructions developer-instructions config"
    );
    assert_eq!(tools[1]["name"], "codex-reply");
    assert_eq!(arguments(&tools[1]), "threadId prompt conversationId");
    assert_eq!(tools.as_array().map(Vec::len), Some(2));
}

#[test]
fn mistakes_are_explained_and_harm_nothing() {
    let harness = McpHarness::new("");
    let mut session = harness.start(json!({ "elicitation": {} }));
    for line in [
        "no JSON",
        "[1, 2]",
        "{\"id\": 7}",
        "{\"jsonrpc\": \"2.0\", \"id\": 9, \"result\": {}}",
    ] {
        session.pipes.send(line.as_bytes());
    }
    for (method, params, code) in [
        ("prompts/list", json!({}), -32601),
        (
            "initialize",
            json!({ "protocolVersion": "2025-06-18" }),
            -32600,
        ),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": "other" }), -32602),
    ] {
        let response = session.ask(method, params);
        assert_eq!(response["error"]["code"], code, "{response}");
    }
    for (tool, arguments, expected) in [
        ("codex", json!({}), "missing field `prompt`"),
        (
            "codex",
            json!({ "prompt": "x", "sandbox": "none" }),
            "use read-only, workspace-write",
        ),
        (
            "codex",
            json!({ "prompt": "x", "cwd": "/nowhere" }),
            "/nowhere",
        ),
        (
            "codex-reply",
            json!({ "prompt": "x", "threadId": "x" }),
            "is not the id of a thread",
        ),
        (
            "codex-reply",
            json!({ "prompt": "x", "threadId": "0199a213-81c0-7800-8aa1-bbab2a035a53" }),
            "the thread cannot be opened",
        ),
    ] {
        let id = session.call(tool, arguments);
        let result = session.result(id);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(expected), "{result}");
    }
    let ping = session.ask("ping", json!({}));
    assert_eq!(ping["result"], json!({}));
}

#[test]
fn a_failed_turn_is_an_error_with_its_thread() {
    let harness = McpHarness::new("");
    let mut session = harness.start(json!({}));
    let id = session.call("codex", json!({ "prompt": "MOCK unauthorized" }));
    let result = session.result(id);
    assert_eq!(result["isError"], true, "{result}");
    assert!(text(&result).starts_with("the turn failed: "), "{result}");
    let thread = &result["structuredContent"]["threadId"];
    assert_eq!(thread, &json!(harness.only_thread()));
}

#[test]
fn progress_is_reported_if_the_client_asks_for_it() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo inside', login = false } }";
    let script = format!(
        "[[answer]]\nmatch = 'do it'\nsteps = [{call}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]"
    );
    for token in [None, Some(json!("p")), Some(json!(7))] {
        let harness = McpHarness::new(&script);
        let mut session = harness.start(json!({}));
        let mut params = json!({ "name": "codex", "arguments": { "prompt": "do it" } });
        if let Some(token) = &token {
            params["_meta"] = json!({ "progressToken": token });
        }
        let id = session.request("tools/call", params);
        assert_eq!(text(&session.result(id)), "Done.");
        let seen = std::mem::take(&mut session.others);
        let reports: Vec<&Value> = seen.iter().map(|it| &it["params"]).collect();
        let Some(token) = token else {
            assert_eq!(seen, Vec::<Value>::new());
            continue;
        };
        assert!(
            reports.iter().all(|it| it["progressToken"] == token),
            "{seen:?}"
        );
        let steps: Vec<u64> = reports
            .iter()
            .filter_map(|it| it["progress"].as_u64())
            .collect();
        assert!(
            steps.len() >= 2 && steps.is_sorted_by(|a, b| a < b),
            "{seen:?}"
        );
        let first = reports[0]["message"].as_str().unwrap_or_default();
        assert!(
            first.starts_with("runs ") && first.contains("echo inside"),
            "{seen:?}"
        );
    }
}
