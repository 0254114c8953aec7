//! The definitions of the tools.

use serde_json::{Value, json};

/// Starts a thread.
pub(crate) const START: &str = "codex";

/// Continues a thread.
pub(crate) const CONTINUE: &str = "codex-reply";

/// Values of `approval-policy`. `on-failure` is accepted from clients of Codex, as `on-request`.
pub(crate) const APPROVAL_POLICIES: [&str; 4] = ["untrusted", "on-request", "on-failure", "never"];

/// Values of `sandbox`.
pub(crate) const SANDBOX_MODES: [&str; 3] = ["read-only", "workspace-write", "danger-full-access"];

/// Text that tells the client's model how the tools belong together.
pub(crate) const INSTRUCTIONS: &str = "`codex` runs a task with a coding agent in a new thread. \
    Its result has the id of the thread; `codex-reply` continues there with the same context.";

/// Returns the result of `tools/list`.
pub(crate) fn tool_list() -> Value {
    json!({ "tools": [start(), reply()] })
}

fn start() -> Value {
    let properties = json!({
        "prompt": text("Task for the agent"),
        "cwd": text("Working folder of the thread; a relative path is relative to the server's"),
        "model": text("Model, or PROVIDER/MODEL"),
        "sandbox": choice("What commands of the agent may write", &SANDBOX_MODES),
        "approval-policy": choice("When the agent asks for approval", &APPROVAL_POLICIES),
        "base-instructions": text("Instructions in place of those of the model"),
        "developer-instructions": text("Instructions in addition to those of the model"),
        "config": {
            "type": "object",
            "additionalProperties": true,
            "description": "Configuration values by key, such as model_reasoning_effort",
        },
    });
    json!({
        "name": START,
        "title": "Start a thread",
        "description": "Starts a thread with a coding agent, runs a task in it to its end, and \
            returns the agent's last message and the id of the thread.",
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": ["prompt"],
            "additionalProperties": false,
        },
        "outputSchema": output(),
    })
}

fn reply() -> Value {
    json!({
        "name": CONTINUE,
        "title": "Continue a thread",
        "description": "Continues a thread with another message, runs its turn to the end, and \
            returns the agent's last message.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "threadId": text("Id of the thread, from a result of either tool"),
                "prompt": text("Message for the agent"),
                "conversationId": text("Older name of threadId"),
            },
            "required": ["prompt"],
            "additionalProperties": false,
        },
        "outputSchema": output(),
    })
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": { "threadId": { "type": "string" }, "content": { "type": "string" } },
        "required": ["threadId", "content"],
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn choice(description: &str, values: &[&str]) -> Value {
    json!({ "type": "string", "enum": values, "description": description })
}
