//! Calls that make no sense, and that the server must survive.

use serde_json::json;

use super::CallContext;
use crate::call::{Class, Input, ModelCallSpec};

pub const KINDS: &[&str] = &[
    "malformed",
    "wrong-types",
    "doubled-members",
    "deep",
    "huge",
    "unknown-tool",
    "garbage-patch",
    "wrong-form",
    "device",
    "pipe",
    "no-session",
    "odd-bytes",
];

const TOOLS: &[&str] = &[
    "exec_command",
    "write_stdin",
    "apply_patch",
    "update_plan",
    "view_image",
    "read_file",
    "list_files",
    "search_files",
    "write_file",
    "edit_file",
    "shell",
    "shell_command",
    "request_permissions",
];

/// Depth and length of the largest inputs.
const DEPTH: usize = 20_000;
const HUGE: usize = 400_000;

pub fn call(context: &mut CallContext<'_>) -> ModelCallSpec {
    let kind = *context.rng.pick(KINDS);
    let number = context.number;
    let tool = *context.rng.pick(TOOLS);
    let function = |name: &str, text: String| {
        ModelCallSpec::new(number, kind, Class::Noise, name, Input::Arguments(text))
    };
    match kind {
        "malformed" => {
            let texts = [
                "",
                "{",
                "[]",
                "null",
                "\"text\"",
                "{\"cmd\":}",
                "{\"cmd\": \"ls\"",
                "NaN",
                "{'cmd': 'ls'}",
                "\u{feff}{}",
            ];
            function(tool, (*context.rng.pick(&texts)).to_owned())
        }
        "wrong-types" => {
            let texts = [
                json!({"cmd": 5, "path": ["a"], "input": {}, "command": "ls", "plan": "x"}),
                json!({"cmd": null, "path": null, "input": null, "command": [[]], "plan": [1]}),
                json!({"cmd": "ls", "yield_time_ms": -1, "max_output_tokens": 1e300, "path": "src", "limit": -5}),
                json!({"cmd": "ls", "workdir": 7, "tty": "yes", "path": "", "old": "", "new": ""}),
                json!({"session_id": "one", "chars": 5, "command": ["", ""], "content": 1}),
                json!({"command": [], "cmd": "", "pattern": "(((", "path": "/", "depth": 1_000_000_000}),
            ];
            function(tool, context.rng.pick(&texts).to_string())
        }
        "doubled-members" => function(
            tool,
            format!(
                "{{\"cmd\":\"true\",\"path\":\"src\",\"cmd\":\"echo x > {0}/made-{number}\",\"path\":\"{0}/made-{number}\",\"content\":\"x\"}}",
                context.layout.outside().display()
            ),
        ),
        "deep" => function(
            tool,
            format!("{{\"cmd\":{}{}}}", "[".repeat(DEPTH), "]".repeat(DEPTH)),
        ),
        "huge" => function(
            tool,
            json!({"cmd": format!(": {}", "x".repeat(HUGE)), "path": "y".repeat(5_000)})
                .to_string(),
        ),
        "unknown-tool" => {
            let long = "z".repeat(10_000);
            let names = [
                "rm",
                "exec_command ",
                "EXEC_COMMAND",
                "functions.exec_command",
                "../exec_command",
                "mcp__files__read",
                "tool\nname",
                "ünïcode",
                &long,
            ];
            let name = names[context.rng.index(names.len())];
            function(name, json!({"cmd": "ls"}).to_string())
        }
        "garbage-patch" => {
            let texts = [
                "",
                "*** Begin Patch",
                "*** Begin Patch\n*** End Patch",
                "*** Begin Patch\n*** Update File: \n@@\n*** End Patch",
                "*** Begin Patch\n*** Add File: a\0b\n+x\n*** End Patch",
                "*** Begin Patch\n*** Update File: src\n@@\n-x\n+y\n*** End Patch",
                "*** Begin Patch\n*** Delete File: src\n*** End Patch",
                "*** Begin Patch\n*** Delete File: /\n*** End Patch",
                "*** Begin Patch\n*** Update File: src/letters.txt\n*** Move to: \n@@\n-alpha\n*** End Patch",
                "--- a/src/letters.txt\n+++ b/src/letters.txt\n@@ -1 +1 @@\n-alpha\n+x\n",
            ];
            let text = (*context.rng.pick(&texts)).to_owned();
            ModelCallSpec::new(number, kind, Class::Noise, "apply_patch", Input::Text(text))
        }
        "wrong-form" => ModelCallSpec::new(
            number,
            kind,
            Class::Noise,
            tool,
            Input::Text("ls -la\n\u{0}".to_owned()),
        ),
        "device" => {
            let paths = [
                "/dev/zero",
                "/dev/stdin",
                "/dev/tty",
                "/proc/self/mem",
                "/proc/kmsg",
                "/dev/full",
            ];
            let path = *context.rng.pick(&paths);
            let name = *context
                .rng
                .pick(&["read_file", "view_image", "edit_file", "search_files"]);
            function(
                name,
                json!({"path": path, "pattern": "x", "old": "x", "new": "y"}).to_string(),
            )
        }
        "pipe" => {
            let path = *context.rng.pick(&["pipe", "datagrams", "daemon"]);
            let name = *context.rng.pick(&[
                "read_file",
                "view_image",
                "edit_file",
                "search_files",
                "list_files",
            ]);
            function(
                name,
                json!({"path": path, "pattern": "x", "old": "x", "new": "y"}).to_string(),
            )
        }
        "no-session" => function(
            "write_stdin",
            json!({"session_id": context.rng.below(1 << 20), "chars": "exit\n"}).to_string(),
        ),
        _ => {
            let texts = [
                "{\"cmd\":\"echo \\u0000 a\"}",
                "{\"cmd\":\"echo \\ud800 a\"}",
                "{\"path\":\"src/\\u0000letters.txt\"}",
                "{\"cmd\":\"echo \\u202e a \\u200b\",\"justification\":\"\\u001b[2J\"}",
                "{\"path\":\"src/new\\nline\",\"content\":\"x\"}",
            ];
            function(tool, (*context.rng.pick(&texts)).to_owned())
        }
    }
}
