//! What the server asks of a client, and the answers: approvals, permissions, questions, client-run tools.
//! Each goes to every subscriber of the thread under one id; the first answer counts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// `serverRequest/resolved`: a request of the server was answered or withdrawn; stop showing it.
/// All subscribers of the thread are told, the one who answered included. Not sent for `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerRequestResolvedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The JSON-RPC id of the request.
    pub request_id: RequestId,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RequestDecision>,
    /// Who answered: the user of the connection, or else the name of its client. Absent when nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
}

open_enum! {
    /// What came of a request of the server.
    pub enum RequestDecision {
        /// Yes, this once.
        Accept = "accept",
        /// Yes, and for the same until the session ends.
        AcceptForSession = "acceptForSession",
        /// Yes, and by a rule from now on.
        AcceptWithRule = "acceptWithRule",
        /// No; the turn goes on.
        Decline = "decline",
        /// No, and the turn ends.
        Cancel = "cancel",
        /// An answer that is neither yes nor no.
        Answered = "answered",
        /// The client could not answer.
        Failed = "failed",
        /// Nobody answered in time.
        Expired = "expired",
        /// Nobody needs the answer any more.
        Withdrawn = "withdrawn",
    }
}

/// `item/commandExecution/requestApproval`: asks whether a command may run or input be typed.
/// The command waits for the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionRequestApprovalParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The command's item.
    pub item_id: ItemId,
    /// When the question was first put, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// Rights the command wants beyond its sandbox; null if none.
    /// Left out for clients without `experimentalApi`.
    #[schemars(extend("x-experimental" = true))]
    pub additional_permissions: Option<AdditionalPermissionProfile>,
    /// Tells apart several questions about one item: its sub-commands, or input typed to it.
    /// Null for an ordinary command.
    pub approval_id: Option<String>,
    /// The answers to offer, in this order; null leaves the choice to the client.
    /// Left out for clients without `experimentalApi`.
    #[schemars(extend("x-experimental" = true))]
    pub available_decisions: Option<Vec<CommandExecutionApprovalDecision>>,
    /// The command line to show; null if the question is not about one.
    pub command: Option<String>,
    /// A guess at what each part of the command does, for display; null if none was made.
    pub command_actions: Option<Vec<CommandAction>>,
    /// The directory it would run in; null if not known.
    pub cwd: Option<String>,
    /// The environment it would run in; null if none is named.
    pub environment_id: Option<String>,
    /// Whether a command or typed input is in question. Defaults to `command`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub kind: CommandExecutionApprovalKind,
    /// The host the command wants to reach. If set, the question is about that; otherwise null.
    pub network_approval_context: Option<NetworkApprovalContext>,
    /// Leading words of the command that a new rule would let through; null if no rule is offered.
    /// Send them back in `acceptWithExecpolicyAmendment` to add the rule.
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    /// Rules for hosts that `applyNetworkPolicyAmendment` could add; null if none is offered.
    pub proposed_network_policy_amendments: Option<Vec<NetworkPolicyAmendment>>,
    /// Why approval is needed, for a person to read; null if not said.
    pub reason: Option<String>,
}

/// The answer to `item/commandExecution/requestApproval`.
/// An error, or an answer that cannot be read, counts as a refusal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionRequestApprovalResponse {
    /// What the user decided.
    pub decision: CommandExecutionApprovalDecision,
}

/// `item/fileChange/requestApproval`: asks whether files may be changed.
/// The changes themselves are in the item, which was told before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeRequestApprovalParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The file change's item.
    pub item_id: ItemId,
    /// When the question was first put, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// A folder the agent wants to write to until the session ends; null if only this change is in question.
    pub grant_root: Option<String>,
    /// Why approval is needed, for a person to read; null if not said.
    pub reason: Option<String>,
}

/// The answer to `item/fileChange/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeRequestApprovalResponse {
    /// What the user decided.
    pub decision: FileChangeApprovalDecision,
}

/// `item/permissions/requestApproval`: asks for rights beyond the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequestApprovalParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The item that needs the rights.
    pub item_id: ItemId,
    /// The directory the agent works in.
    pub cwd: String,
    /// The rights asked for, on files and on the network.
    pub permissions: RequestPermissionProfile,
    /// When the question was first put, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// The environment the rights are for; null if none is named.
    pub environment_id: Option<String>,
    /// Why the agent wants them, for a person to read; null if not said.
    pub reason: Option<String>,
}

/// The answer to `item/permissions/requestApproval`. An error grants nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequestApprovalResponse {
    /// The rights granted: all that were asked for, some, or none.
    pub permissions: GrantedPermissionProfile,
    /// How long they hold. Defaults to `turn`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub scope: PermissionGrantScope,
    /// True to have each further command of the turn reviewed first, even one the sandbox would let run.
    /// Null asks for no such thing.
    pub strict_auto_review: Option<bool>,
}

/// `item/tool/requestUserInput`: the agent has questions for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The item that asks.
    pub item_id: ItemId,
    /// Whether the turn stands still until the answer comes.
    pub is_blocking: bool,
    /// What to ask, in this order.
    pub questions: Vec<ToolRequestUserInputQuestion>,
    /// Milliseconds until the question settles itself; null if it does not. Outdated: go by `isBlocking`.
    pub auto_resolution_ms: Option<u64>,
}

/// The answer to `item/tool/requestUserInput`. An error counts as no answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputResponse {
    /// The answers by question id. Questions left out stay unanswered.
    pub answers: BTreeMap<String, ToolRequestUserInputAnswer>,
}

/// `item/tool/call`: run a tool that the client offered in `dynamicTools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// The model's id for this call, the same as the item's.
    pub call_id: String,
    /// What the model passes to the tool: any JSON, usually an object.
    pub arguments: Value,
    /// The tool's name.
    pub tool: String,
    /// The group the tool belongs to; null if it stands alone.
    pub namespace: Option<String>,
}

/// The answer to `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallResponse {
    /// What the model shall read, in this order.
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    /// Whether the tool did its work. If false, the item ends as `failed`.
    pub success: bool,
}

keyed! {
    /// What the user decides about a command.
    pub enum CommandExecutionApprovalDecision {
        /// Run it this once.
        Accept = "accept",
        /// Run it, and do not ask again for the same in this session.
        AcceptForSession = "acceptForSession",
        /// Run it, and add a rule that lets commands like it through from now on.
        AcceptWithExecpolicyAmendment(ExecpolicyAmendmentDecision) = "acceptWithExecpolicyAmendment",
        /// Keep a rule that allows or denies the host, and go by it.
        ApplyNetworkPolicyAmendment(NetworkPolicyAmendmentDecision) = "applyNetworkPolicyAmendment",
        /// Do not run it. The model is told, and the turn goes on.
        Decline = "decline",
        /// Do not run it, and end the turn as interrupted.
        Cancel = "cancel",
    }
}

open_enum! {
    /// What a command approval is about.
    pub enum CommandExecutionApprovalKind or Command {
        /// A command that would be run.
        Command = "command",
        /// Input that would be typed into a terminal already open.
        WriteStdin = "writeStdin",
    }
}

open_enum! {
    /// What the user decides about a file change.
    pub enum FileChangeApprovalDecision {
        /// Apply it this once.
        Accept = "accept",
        /// Apply it, and do not ask again for these files in this session.
        AcceptForSession = "acceptForSession",
        /// Leave the files alone. The model is told, and the turn goes on.
        Decline = "decline",
        /// Leave the files alone, and end the turn as interrupted.
        Cancel = "cancel",
    }
}

/// One question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputQuestion {
    /// Names the question in the answer. Unique within the request.
    pub id: String,
    /// A few words to put above it.
    pub header: String,
    /// The question in full.
    pub question: String,
    /// Whether the user may type an answer instead of taking an option. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_other: bool,
    /// Whether to hide what the user types. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_secret: bool,
    /// Answers to choose from; null asks for free text.
    pub options: Option<Vec<ToolRequestUserInputOption>>,
}

/// The user's answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputAnswer {
    /// Labels of the options taken, or the text typed. Empty if the user gave none.
    pub answers: Vec<String>,
}

/// One answer to choose from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputOption {
    /// What choosing it means.
    pub description: String,
    /// The short text to show, sent back if chosen.
    pub label: String,
}

/// Body of the decision `acceptWithExecpolicyAmendment`: run it and add a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecpolicyAmendmentDecision {
    /// Start of a command line, word by word. Commands that begin so are not asked about again.
    #[serde(rename = "execpolicy_amendment")]
    pub execpolicy_amendment: Vec<String>,
}

/// Body of the decision `applyNetworkPolicyAmendment`: settle access to a host for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyAmendmentDecision {
    /// The host, and whether it is allowed or denied.
    #[serde(rename = "network_policy_amendment")]
    pub network_policy_amendment: NetworkPolicyAmendment,
}
