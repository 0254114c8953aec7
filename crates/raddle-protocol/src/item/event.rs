//! What is told of an item while a turn runs: its start, its growth and its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// `item/started`: an item was opened. Subscribers of the thread are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemStartedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The item as it stands at its start; text and output are still to come.
    pub item: ThreadItem,
    /// When the item started, in milliseconds since the epoch.
    pub started_at_ms: i64,
}

/// `item/completed`: an item has ended, well or not. Nothing more will be said of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemCompletedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// When the item ended, in milliseconds since the epoch.
    pub completed_at_ms: i64,
    /// The whole item in its last form. Where it differs from the deltas, it is right.
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
    /// The agent message that grows.
    pub item_id: ItemId,
    /// Text to append.
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
    /// Place of the new part in `summary`, counted from 0.
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
    /// Which part of `summary` grows, counted from 0.
    pub summary_index: i64,
}

/// `item/reasoning/textDelta`: more of the model's unabridged reasoning, if the provider shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningTextDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The reasoning item it belongs to.
    pub item_id: ItemId,
    /// Which part of `content` grows, counted from 0.
    pub content_index: i64,
    /// Text to append to that part.
    pub delta: String,
}

/// `item/commandExecution/outputDelta`: a running command has printed something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionOutputDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The command that printed it.
    pub item_id: ItemId,
    /// Plain text from either output stream, in the order it was read.
    pub delta: String,
}

/// `item/mcpToolCall/progress`: a running MCP tool reports how far it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallProgressNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The tool call that reports.
    pub item_id: ItemId,
    /// What the tool says, for a person to read. It is not kept with the item.
    pub message: String,
}

/// `item/plan/delta`: more text of a proposed plan.
/// Trust the completed item: its text can differ from what was streamed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The plan that grows.
    pub item_id: ItemId,
    /// Text to append.
    pub delta: String,
}

/// `item/fileChange/patchUpdated`: a proposed change now looks like this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangePatchUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The file change being revised.
    pub item_id: ItemId,
    /// All changes of the item; they replace the earlier list.
    pub changes: Vec<FileUpdateChange>,
}

/// `item/fileChange/outputDelta`: kept for old clients; the server never sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeOutputDeltaNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The file change it belongs to.
    pub item_id: ItemId,
    /// Text to append.
    pub delta: String,
}

/// `item/commandExecution/terminalInteraction`: the agent typed into a running command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminalInteractionNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The command that runs in the terminal.
    pub item_id: ItemId,
    /// The terminal, named as in the item's `processId`.
    pub process_id: String,
    /// What was written to its input. Empty if the agent only looked for new output.
    pub stdin: String,
}
