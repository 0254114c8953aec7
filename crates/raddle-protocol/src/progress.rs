//! What a turn that runs waits for. The extension `raddle/progress`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// `turn/progress`: a turn runs, and this is what it waits for. Sent at least every 5 seconds to those of the
/// thread's subscribers who opted into `raddle/progress`. It is no record: it has no `seq` and is not repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnProgressNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that runs.
    pub turn_id: TurnId,
    /// What it waits for. Of several things it is the one that someone has to do something about, or else the first.
    pub waiting_for: TurnWaitingFor,
    /// For how many milliseconds the server that runs the turn has seen it wait for that.
    pub since_ms: u64,
}

/// What a turn waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnWaitingFor {
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: TurnWaitingForType,
    /// The name of the model or of the tool, if it has one; of a command that the user runs, its line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The item it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
}

open_enum! {
    /// The kind of thing that a turn waits for.
    pub enum TurnWaitingForType {
        /// The model, which was called and has not said all.
        Model = "model",
        /// A tool that runs, here or at a client.
        Tool = "tool",
        /// Someone's yes or no.
        Approval = "approval",
        /// Someone's answer to a question.
        Question = "question",
        /// The time to call the model again, after a call that failed.
        Retry = "retry",
        /// The journal, which does not take what happened.
        Storage = "storage",
        /// Nobody else: the server is about to go on.
        Server = "server",
    }
}
