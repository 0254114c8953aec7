//! Specifications of the command tools, as the model reads them.

use raddle_core::ports::ToolSpec;
use serde_json::json;

pub(crate) fn exec_command() -> ToolSpec {
    ToolSpec {
        name: "exec_command".to_owned(),
        description: "Runs a command in a shell and gives its output. One that still runs after yield_time_ms goes \
                      on in the background, at the latest until the turn ends: use write_stdin with its session \
                      id to read more or to type into it."
            .to_owned(),
        freeform: None,
        schema: json!({
            "type": "object",
            "properties": {
                "cmd": { "type": "string", "description": "The command line." },
                "workdir": { "type": "string", "description": "The folder it starts in; the thread's own, if absent." },
                "shell": { "type": "string", "description": "The shell that reads it; bash, if absent." },
                "login": { "type": "boolean", "description": "Whether it is a login shell, where the operator allows one in the sandbox; false, if absent." },
                "tty": { "type": "boolean", "description": "Whether it gets a terminal, and can be typed into." },
                "yield_time_ms": { "type": "integer", "description": "How long to wait for it; 10000, if absent." },
                "max_output_tokens": { "type": "integer", "description": "How much of its output to read." },
                "sandbox_permissions": {
                    "type": "string", "enum": ["use_default", "require_escalated"],
                    "description": "require_escalated asks the user for approval to run it outside the sandbox.",
                },
                "justification": { "type": "string", "description": "For require_escalated: why, as a question to the user." },
            },
            "required": ["cmd"], "additionalProperties": false,
        }),
    }
}

pub(crate) fn write_stdin() -> ToolSpec {
    ToolSpec {
        name: "write_stdin".to_owned(),
        description: "Types into a command that still runs, and gives what it printed since. Without chars it \
                      only waits for more output."
            .to_owned(),
        freeform: None,
        schema: json!({
            "type": "object",
            "properties": {
                "session_id": { "type": "integer", "description": "The session id of the command." },
                "chars": { "type": "string", "description": "What to type; \\u0003 interrupts, and ends a command without a tty." },
                "yield_time_ms": { "type": "integer", "description": "How long to wait for output; 250, if absent." },
                "max_output_tokens": { "type": "integer", "description": "How much of its output to read." },
            },
            "required": ["session_id"], "additionalProperties": false,
        }),
    }
}
