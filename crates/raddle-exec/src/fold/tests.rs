//! Notifications of a turn, and the lines that the fold prints for them.

use raddle_protocol::Notification;
use serde_json::{Value, json};

use super::*;

const THREAD: &str = "019a0000-0000-7000-8000-000000000001";

/// The notifications of the server, and the lines that the fold prints for them.
struct FoldCase {
    name: &'static str,
    notifications: Vec<(&'static str, Value)>,
    lines: Vec<Value>,
    outcome: Option<TurnOutcome>,
}

fn item(item: Value) -> Value {
    let at = 1;
    json!({ "threadId": THREAD, "turnId": "t", "item": item, "startedAtMs": at, "completedAtMs": at })
}

fn ended(turn: Value) -> (&'static str, Value) {
    let mut params = json!({ "id": "t", "items": [] });
    if let (Some(params), Some(turn)) = (params.as_object_mut(), turn.as_object()) {
        params.extend(turn.clone());
    }
    (
        "turn/completed",
        json!({ "threadId": THREAD, "turn": params }),
    )
}

fn command(status: &str, output: Value, code: Value) -> Value {
    item(json!({
        "type": "commandExecution", "id": "call_1", "command": "ls", "commandActions": [], "cwd": "/",
        "status": status, "aggregatedOutput": output, "exitCode": code,
    }))
}

fn usage(total: i64) -> Value {
    let figures = |it: i64| {
        json!({
            "totalTokens": it, "inputTokens": it, "cachedInputTokens": 1, "outputTokens": 2,
            "reasoningOutputTokens": 3, "cacheWriteInputTokens": 4,
        })
    };
    let tokens = json!({ "last": figures(1), "total": figures(total) });
    json!({ "threadId": THREAD, "turnId": "t", "tokenUsage": tokens })
}

fn cases() -> Vec<FoldCase> {
    let message =
        |id: &str, text: &str| item(json!({ "type": "agentMessage", "id": id, "text": text }));
    vec![
        FoldCase {
            name: "messages and thoughts are told when they are whole, and what the user said is not",
            notifications: vec![
                (
                    "item/started",
                    item(json!({ "type": "userMessage", "id": "u", "content": [] })),
                ),
                (
                    "item/completed",
                    item(json!({ "type": "userMessage", "id": "u", "content": [] })),
                ),
                (
                    "item/started",
                    item(json!({ "type": "reasoning", "id": "r", "summary": [] })),
                ),
                (
                    "item/completed",
                    item(json!({ "type": "reasoning", "id": "r", "summary": ["so", "what"] })),
                ),
                (
                    "item/completed",
                    item(
                        json!({ "type": "reasoning", "id": "q", "summary": [" "], "content": ["x"] }),
                    ),
                ),
                ("item/started", message("m", "")),
                (
                    "item/agentMessage/delta",
                    json!({ "threadId": THREAD, "turnId": "t", "itemId": "m", "delta": "he" }),
                ),
                ("item/completed", message("m", "hello")),
                ("thread/tokenUsage/updated", usage(7)),
                ("thread/tokenUsage/updated", usage(9)),
                ended(json!({ "status": "completed" })),
            ],
            lines: vec![
                json!({ "type": "item.completed", "item": { "id": "item_0", "type": "reasoning", "text": "so\nwhat" } }),
                json!({ "type": "item.completed", "item": { "id": "item_1", "type": "agent_message", "text": "hello" } }),
                json!({ "type": "turn.completed", "usage": {
                    "input_tokens": 9, "cached_input_tokens": 1, "cache_write_input_tokens": 4,
                    "output_tokens": 2, "reasoning_output_tokens": 3,
                } }),
            ],
            outcome: Some(TurnOutcome::Completed(Some("hello".to_owned()))),
        },
        FoldCase {
            name: "a command has a beginning and an end under one id",
            notifications: vec![
                (
                    "item/started",
                    command("inProgress", Value::Null, Value::Null),
                ),
                ("item/completed", message("m", "meanwhile")),
                ("item/completed", command("failed", json!("no\n"), json!(2))),
            ],
            lines: vec![
                json!({ "type": "item.started", "item": {
                    "id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "",
                    "exit_code": null, "status": "in_progress",
                } }),
                json!({ "type": "item.completed", "item": { "id": "item_1", "type": "agent_message", "text": "meanwhile" } }),
                json!({ "type": "item.completed", "item": {
                    "id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "no\n",
                    "exit_code": 2, "status": "failed",
                } }),
            ],
            outcome: None,
        },
        FoldCase {
            name: "a command that nobody allowed was declined",
            notifications: vec![(
                "item/completed",
                command("declined", Value::Null, Value::Null),
            )],
            lines: vec![json!({ "type": "item.completed", "item": {
                "id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "",
                "exit_code": null, "status": "declined",
            } })],
            outcome: None,
        },
        FoldCase {
            name: "files that change, and those that do not",
            notifications: vec![(
                "item/completed",
                item(json!({
                    "type": "fileChange", "id": "f", "status": "declined", "changes": [
                        { "path": "/a", "kind": { "type": "add" }, "diff": "x" },
                        { "path": "/b", "kind": { "type": "update", "move_path": "/c" }, "diff": "" },
                        { "path": "/d", "kind": { "type": "delete" }, "diff": "" },
                    ],
                })),
            )],
            lines: vec![json!({ "type": "item.completed", "item": {
                "id": "item_0", "type": "file_change", "status": "failed", "changes": [
                    { "path": "/a", "kind": "add" }, { "path": "/b", "kind": "update" }, { "path": "/d", "kind": "delete" },
                ],
            } })],
            outcome: None,
        },
        FoldCase {
            name: "a tool of an MCP server",
            notifications: vec![(
                "item/completed",
                item(json!({
                    "type": "mcpToolCall", "id": "c", "server": "s", "tool": "t", "status": "completed",
                    "arguments": { "a": 1 }, "result": { "content": [{ "type": "text", "text": "x" }] },
                })),
            )],
            lines: vec![json!({ "type": "item.completed", "item": {
                "id": "item_0", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": { "a": 1 },
                "result": { "content": [{ "type": "text", "text": "x" }], "structured_content": null },
                "error": null, "status": "completed",
            } })],
            outcome: None,
        },
        FoldCase {
            name: "a plan begins, changes and ends with the turn",
            notifications: vec![
                (
                    "turn/plan/updated",
                    json!({ "threadId": THREAD, "turnId": "t", "plan": [{ "step": "a", "status": "pending" }] }),
                ),
                (
                    "turn/plan/updated",
                    json!({ "threadId": THREAD, "turnId": "t", "plan": [{ "step": "a", "status": "completed" }] }),
                ),
                ended(json!({ "status": "completed" })),
            ],
            lines: vec![
                json!({ "type": "item.started", "item": { "id": "item_0", "type": "todo_list", "items": [{ "text": "a", "completed": false }] } }),
                json!({ "type": "item.updated", "item": { "id": "item_0", "type": "todo_list", "items": [{ "text": "a", "completed": true }] } }),
                json!({ "type": "item.completed", "item": { "id": "item_0", "type": "todo_list", "items": [{ "text": "a", "completed": true }] } }),
                json!({ "type": "turn.completed", "usage": {
                    "input_tokens": 0, "cached_input_tokens": 0, "cache_write_input_tokens": 0,
                    "output_tokens": 0, "reasoning_output_tokens": 0,
                } }),
            ],
            outcome: Some(TurnOutcome::Completed(None)),
        },
        FoldCase {
            name: "a failure is told twice, and a new try is no failure",
            notifications: vec![
                (
                    "error",
                    json!({ "threadId": THREAD, "turnId": "t", "willRetry": true, "error": { "message": "busy" } }),
                ),
                (
                    "error",
                    json!({ "threadId": THREAD, "turnId": "t", "willRetry": false, "error": { "message": "no", "additionalDetails": "500" } }),
                ),
                ended(
                    json!({ "status": "failed", "error": { "message": "no", "additionalDetails": "500" } }),
                ),
            ],
            lines: vec![
                json!({ "type": "error", "message": "busy", "will_retry": true }),
                json!({ "type": "error", "message": "no (500)" }),
                json!({ "type": "turn.failed", "error": { "message": "no (500)" } }),
            ],
            outcome: Some(TurnOutcome::Failed(Failure {
                message: "no (500)".to_owned(),
                is_budget: false,
            })),
        },
        FoldCase {
            name: "a budget is a failure of its own kind",
            notifications: vec![ended(
                json!({ "status": "failed", "error": { "message": "spent", "codexErrorInfo": "sessionBudgetExceeded" } }),
            )],
            lines: vec![json!({ "type": "turn.failed", "error": { "message": "spent" } })],
            outcome: Some(TurnOutcome::Failed(Failure {
                message: "spent".to_owned(),
                is_budget: true,
            })),
        },
        FoldCase {
            name: "a turn that was stopped has failed for who reads the lines",
            notifications: vec![ended(json!({ "status": "interrupted" }))],
            lines: vec![
                json!({ "type": "turn.failed", "error": { "message": "the turn was interrupted" } }),
            ],
            outcome: Some(TurnOutcome::Interrupted),
        },
        FoldCase {
            name: "warnings are items, and those about others are not told",
            notifications: vec![
                (
                    "warning",
                    json!({ "threadId": THREAD, "message": "careful" }),
                ),
                (
                    "warning",
                    json!({ "threadId": "019a0000-0000-7000-8000-000000000002", "message": "theirs" }),
                ),
                (
                    "configWarning",
                    json!({ "summary": "a key", "details": "of yours" }),
                ),
                ("deprecationNotice", json!({ "summary": "old" })),
            ],
            lines: vec![
                json!({ "type": "item.completed", "item": { "id": "item_0", "type": "error", "message": "careful" } }),
                json!({ "type": "item.completed", "item": { "id": "item_1", "type": "error", "message": "a key (of yours)" } }),
                json!({ "type": "item.completed", "item": { "id": "item_2", "type": "error", "message": "old" } }),
            ],
            outcome: None,
        },
        FoldCase {
            name: "other turns are not told",
            notifications: vec![
                (
                    "item/completed",
                    json!({
                        "threadId": THREAD, "turnId": "before", "completedAtMs": 1,
                        "item": { "type": "agentMessage", "id": "m", "text": "old" },
                    }),
                ),
                (
                    "turn/completed",
                    json!({ "threadId": THREAD, "turn": { "id": "before", "items": [], "status": "failed" } }),
                ),
            ],
            lines: vec![],
            outcome: None,
        },
    ]
}

#[test]
fn notifications_become_lines() {
    for case in cases() {
        let mut fold = Fold::new(THREAD.parse().expect("an id"));
        assert_eq!(
            json!(fold.started()),
            json!({ "type": "thread.started", "thread_id": THREAD })
        );
        let started = fold.begin("t".into());
        assert_eq!(json!(started), json!({ "type": "turn.started" }));
        let mut lines = Vec::new();
        for (method, params) in case.notifications {
            let notification = Notification::read(method, &params.to_string()).expect(method);
            let notification =
                notification.unwrap_or_else(|error| panic!("{method} {params}: {error}"));
            lines.extend(
                fold.on_notification(&notification)
                    .into_iter()
                    .map(|it| json!(it)),
            );
        }
        assert_eq!(lines, case.lines, "{}", case.name);
        assert_eq!(fold.outcome(), case.outcome.as_ref(), "{}", case.name);
    }
}

#[test]
fn missed_events_are_reported_from_a_snapshot() {
    let mut fold = Fold::new(THREAD.parse().expect("an id"));
    fold.begin("t".into());
    let params = command("inProgress", Value::Null, Value::Null).to_string();
    let notification = Notification::read("item/started", &params).expect("known");
    fold.on_notification(&notification.expect("an item"));
    let item = |over: Value| {
        let mut item = command("completed", json!("x"), json!(0))["item"].clone();
        item["completedAtMs"] = over;
        item
    };
    let message = json!({ "type": "agentMessage", "id": "m", "text": "done", "completedAtMs": 2 });
    let snapshot = |status: &str, items: Value| -> Turn {
        let turn = json!({ "id": "t", "status": status, "items": items });
        serde_json::from_value(turn).expect("a turn")
    };
    let mut kinds = Vec::new();
    for turn in [
        snapshot("inProgress", json!([item(Value::Null)])),
        snapshot("inProgress", json!([item(json!(1)), message])),
        snapshot("completed", json!([item(json!(1)), message])),
        snapshot("completed", json!([item(json!(1)), message])),
    ] {
        let events = fold.on_snapshot(&turn);
        kinds.push(
            events
                .iter()
                .map(|it| json!(it)["type"].clone())
                .collect::<Vec<_>>(),
        );
    }
    let (over, end) = ("item.completed", "turn.completed");
    assert_eq!(json!(kinds), json!([[], [over, over], [end], []]));
    let outcome = TurnOutcome::Completed(Some("done".to_owned()));
    assert_eq!(fold.outcome(), Some(&outcome));
}
