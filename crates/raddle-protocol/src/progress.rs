//! Progress of a running turn: the extension `raddle/progress`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// `turn/progress`: a running turn and the reason why it is waiting. Sent at least every 5 seconds
/// to the thread's subscribers that enabled `raddle/progress`. It is not a record: it has no `seq`
/// and is not replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnProgressNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The running turn.
    pub turn_id: TurnId,
    /// Reason why the turn is waiting. Of several reasons, one that needs an action of the user or
    /// client, or else the first.
    pub waiting_for: TurnWaitingFor,
    /// Time in milliseconds for which the turn has been waiting, as observed by the server that
    /// runs it.
    pub since_ms: u64,
}

/// Reason why a turn is waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnWaitingFor {
    /// Kind of the reason.
    #[serde(rename = "type")]
    pub kind: TurnWaitingForType,
    /// Name of the model or the tool, if it has one; for a command that the user runs, its command
    /// line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Item that the turn is waiting for, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
}

open_enum! {
    /// Kind of the reason why a turn is waiting.
    pub enum TurnWaitingForType {
        /// The model, whose response is not complete.
        Model = "model",
        /// A tool that runs, on the server or at a client.
        Tool = "tool",
        /// The decision of a reviewer on an approval.
        Approval = "approval",
        /// The user's answer to a question.
        Question = "question",
        /// The next model call, delayed after a failed call.
        Retry = "retry",
        /// The journal, which does not accept new records.
        Storage = "storage",
        /// The server itself, which is about to continue.
        Server = "server",
    }
}
