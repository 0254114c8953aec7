//! Items as they are on the wire.

use raddle_core::*;
use serde_json::{Value, json};

fn item_json(status: ItemStatus, body: ItemBody) -> Value {
    let open = status == ItemStatus::InProgress;
    let item = Item {
        id: "i1".into(),
        status,
        body,
        call: Some(ToolCall {
            id: "c1".to_owned(),
            tool: "shell".to_owned(),
            arguments: "{\"a\":1}".to_owned(),
            freeform: false,
            alone: false,
        }),
        output: (!open).then(|| Output::text("out")),
        sealed: None,
        started_at: Timestamp(1_000),
        completed_at: (!open).then_some(Timestamp(3_500)),
    };
    serde_json::to_value(item_view(&item)).expect("JSON")
}

fn tool() -> ItemBody {
    ItemBody::Tool(NamedTool {
        name: "probe".to_owned(),
    })
}

/// An open item has no success value, and only a completed one succeeded.
#[test]
fn a_call_succeeded_if_it_is_completed() {
    for (status, success) in [
        (ItemStatus::InProgress, json!(null)),
        (ItemStatus::Completed, json!(true)),
        (ItemStatus::Failed, json!(false)),
        (ItemStatus::Declined, json!(false)),
        (ItemStatus::NotRun, json!(false)),
        (ItemStatus::Interrupted, json!(false)),
        (ItemStatus::Unknown, json!(false)),
    ] {
        assert_eq!(item_json(status, tool())["success"], success, "{status:?}");
    }
}

/// It shows name, arguments, text and duration.
#[test]
fn a_tool_without_an_item_type_is_shown_as_a_call() {
    let whole = item_json(ItemStatus::Completed, tool());
    assert_eq!(whole["type"], "dynamicToolCall");
    assert_eq!(whole["tool"], "probe");
    assert_eq!(whole["arguments"], json!({ "a": 1 }));
    let content = json!([{ "type": "inputText", "text": "out" }]);
    assert_eq!(whole["contentItems"], content);
    assert_eq!(whole["durationMs"], 2_500);
    let open = item_json(ItemStatus::InProgress, tool());
    assert_eq!(open["contentItems"], json!(null));
    assert_eq!(open["durationMs"], json!(null));
}

/// Several queries are listed; one is not listed again.
#[test]
fn a_search_shows_its_queries() {
    for (queries, expected) in [
        (
            vec!["a"],
            json!({ "type": "search", "query": "a", "queries": null }),
        ),
        (
            vec!["a", "b"],
            json!({ "type": "search", "query": "a", "queries": ["a", "b"] }),
        ),
    ] {
        let queries = queries.into_iter().map(str::to_owned).collect();
        let search = ItemBody::WebSearch(WebSearch {
            query: "a".to_owned(),
            action: Some(WebAction::Search { queries }),
            results: None,
        });
        assert_eq!(item_json(ItemStatus::Completed, search)["action"], expected);
    }
}

#[test]
fn a_command_shows_what_it_does() {
    let text = |text: &str| text.to_owned();
    let read = Action::Read {
        command: text("cat a"),
        name: text("a"),
        path: text("/w/a"),
    };
    let list = Action::List {
        command: text("ls"),
        path: None,
    };
    let search = Action::Search {
        command: text("rg b"),
        query: Some(text("b")),
        path: Some(text("c")),
    };
    let other = Action::Other { command: text("d") };
    let run = ItemBody::Command(CommandRun {
        actions: vec![read, list, search, other],
        ..CommandRun::default()
    });
    assert_eq!(
        item_json(ItemStatus::Completed, run)["commandActions"],
        json!([
            { "type": "read", "command": "cat a", "name": "a", "path": "/w/a" },
            { "type": "listFiles", "command": "ls", "path": null },
            { "type": "search", "command": "rg b", "path": "c", "query": "b" },
            { "type": "unknown", "command": "d" },
        ])
    );
}
