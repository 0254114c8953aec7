//! The lines that `--json` prints: one event each, in the format of `codex exec --json`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub(crate) enum Event {
    /// Always the first event.
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted {},
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: Usage },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: ErrorText },
    #[serde(rename = "item.started")]
    ItemStarted { item: ExecItem },
    #[serde(rename = "item.updated")]
    ItemUpdated { item: ExecItem },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: ExecItem },
    #[serde(rename = "error")]
    Error {
        message: String,
        /// Raddle's own field: present only if the server retries and the turn goes on.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        will_retry: bool,
    },
}

/// All tokens of the thread so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: i64,
    pub(crate) cached_input_tokens: i64,
    pub(crate) cache_write_input_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) reasoning_output_tokens: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ErrorText {
    pub(crate) message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ExecItem {
    /// `item_0`, `item_1` and so on, counted in each run.
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) body: ExecItemBody,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ExecItemBody {
    AgentMessage {
        text: String,
    },
    Reasoning {
        text: String,
    },
    CommandExecution {
        command: String,
        aggregated_output: String,
        exit_code: Option<i32>,
        status: &'static str,
    },
    FileChange {
        changes: Vec<Change>,
        /// `failed` for a declined change, because the format has no other status for it.
        status: &'static str,
        #[serde(skip)]
        is_declined: bool,
    },
    McpToolCall {
        server: String,
        tool: String,
        arguments: Value,
        result: Option<McpResult>,
        error: Option<ErrorText>,
        status: &'static str,
    },
    CollabToolCall {
        tool: String,
        sender_thread_id: String,
        receiver_thread_ids: Vec<String>,
        prompt: Option<String>,
        agents_states: BTreeMap<String, AgentState>,
        status: &'static str,
    },
    WebSearch {
        query: String,
        action: Value,
    },
    TodoList {
        items: Vec<Todo>,
    },
    /// A warning for the user that stops nothing.
    Error {
        message: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct McpResult {
    pub(crate) content: Vec<Value>,
    pub(crate) structured_content: Option<Value>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AgentState {
    pub(crate) status: String,
    pub(crate) message: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Todo {
    pub(crate) text: String,
    pub(crate) completed: bool,
}
