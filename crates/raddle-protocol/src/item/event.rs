//! Notifications about an item while a turn runs: its start, its deltas and its completion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// `item/started`: an item was opened. Sent to the subscribers of the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemStartedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The item in its initial state; text and output follow.
    pub item: ThreadItem,
    /// Start time of the item, in milliseconds since the epoch.
    pub started_at_ms: i64,
}

/// `item/completed`: an item has ended, successfully or not. No further notification about it
/// follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemCompletedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// Completion time of the item, in milliseconds since the epoch.
    pub completed_at_ms: i64,
    /// The complete item in its final form. It takes precedence over the deltas.
    pub item: ThreadItem,
}

/// `item/agentMessage/delta`: more text of an agent message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMessageDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The agent message to append to.
    pub item_id: ItemId,
    /// Text to append to the message.
    pub delta: String,
}

/// `item/reasoning/summaryPartAdded`: a new part of the reasoning summary begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningSummaryPartAddedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The reasoning item it belongs to.
    pub item_id: ItemId,
    /// Index of the new part in `summary`, counted from 0.
    pub summary_index: i64,
}

/// `item/reasoning/summaryTextDelta`: more text of one part of the reasoning summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningSummaryTextDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The reasoning item it belongs to.
    pub item_id: ItemId,
    /// Text to append to that part.
    pub delta: String,
    /// Index of the part in `summary`, counted from 0.
    pub summary_index: i64,
}

/// `item/reasoning/textDelta`: more of the model's full reasoning text, if the provider reveals it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningTextDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The reasoning item it belongs to.
    pub item_id: ItemId,
    /// Index of the part in `content`, counted from 0.
    pub content_index: i64,
    /// Text to append to that part.
    pub delta: String,
}

/// `item/commandExecution/outputDelta`: a running command has written output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionOutputDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The command that wrote the output.
    pub item_id: ItemId,
    /// Plain text from either output stream, in the order it was read.
    pub delta: String,
}

/// `item/mcpToolCall/progress`: a running MCP tool reports its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallProgressNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The tool call that reports progress.
    pub item_id: ItemId,
    /// Human-readable message of the tool. It is not stored with the item.
    pub message: String,
}

/// `item/plan/delta`: more text of a proposed plan. The text of the completed item can differ from
/// the streamed text and takes precedence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The plan to append to.
    pub item_id: ItemId,
    /// Text to append to the plan.
    pub delta: String,
}

/// `item/fileChange/patchUpdated`: a proposed file change was revised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangePatchUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The revised file change.
    pub item_id: ItemId,
    /// All changes of the item; they replace the earlier list.
    pub changes: Vec<FileUpdateChange>,
}

/// `item/fileChange/outputDelta`: defined for old clients; the server never sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeOutputDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The file change it belongs to.
    pub item_id: ItemId,
    /// Text to append to the output.
    pub delta: String,
}

/// `item/commandExecution/terminalInteraction`: the agent wrote to the stdin of a running command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminalInteractionNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The command that runs in the terminal.
    pub item_id: ItemId,
    /// Id of the terminal, as in the item's `processId`.
    pub process_id: String,
    /// Text written to stdin. Empty if the agent only polled for new output.
    pub stdin: String,
}
