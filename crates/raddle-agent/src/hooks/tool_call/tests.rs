use raddle_core::{CommandRun, NamedTool};
use serde_json::json;

use super::*;

fn call(tool: &str, arguments: &str, freeform: bool) -> ToolCall {
    ToolCall {
        id: "c".to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        freeform,
        alone: false,
    }
}

fn command() -> ItemBody {
    ItemBody::Command(CommandRun {
        command: "ls".to_owned(),
        ..CommandRun::default()
    })
}

fn named() -> ItemBody {
    ItemBody::Tool(NamedTool {
        name: "look".to_owned(),
    })
}

#[test]
fn a_change_replaces_members_of_the_arguments() {
    for (body, call, update, expected) in [
        (
            command(),
            call("exec_command", r#"{"cmd":"ls","workdir":"/w"}"#, false),
            json!({ "command": "ls -l" }),
            Some(r#"{"cmd":"ls -l","workdir":"/w"}"#),
        ),
        (
            command(),
            call("shell", r#"{"command":["ls","a b"]}"#, false),
            json!({ "command": "ls a b" }),
            Some(r#"{"command":["ls","a b"]}"#),
        ),
        (
            command(),
            call("shell", r#"{"command":["ls"]}"#, false),
            json!({ "command": "pwd" }),
            Some(r#"{"command":"pwd"}"#),
        ),
        (
            named(),
            call("look", r#"{"a":1}"#, false),
            json!({ "b": 2 }),
            Some(r#"{"a":1,"b":2}"#),
        ),
        (
            named(),
            call("apply_patch", "old", true),
            json!({ "command": "new" }),
            Some("new"),
        ),
        (named(), call("apply_patch", "old", true), json!({}), None),
        (named(), call("look", "{}", false), json!(7), None),
    ] {
        let changed = HookTool::of(&call, &body).changed(&call, update);
        assert_eq!(changed.map(|it| it.arguments).as_deref(), expected);
    }
}

/// A matcher `Bash` selects commands, and what is typed into them.
#[test]
fn matchers_select_by_these_names() {
    let typed = ItemBody::Command(CommandRun {
        source: CommandSource::Typed,
        ..CommandRun::default()
    });
    let chars = r#"{"session_id":1,"chars":"ls\n"}"#;
    for (body, call, expected) in [
        (
            command(),
            call("exec_command", r#"{"cmd":"ls"}"#, false),
            &["Bash", "exec_command"][..],
        ),
        (
            typed,
            call("write_stdin", chars, false),
            &["write_stdin", "write_stdin", "Bash"],
        ),
        (named(), call("look", "{}", false), &["look", "look"]),
    ] {
        let tool = HookTool::of(&call, &body);
        assert_eq!(tool.subjects(vec![call.tool.clone()]), expected);
    }
}
