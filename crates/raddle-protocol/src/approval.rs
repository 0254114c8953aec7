//! Requests from the server to clients and their responses: approvals, permissions, questions,
//! client-run tools. Each request goes to every subscriber of the thread under one id; the first
//! response counts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// `serverRequest/resolved`: a server request was answered or withdrawn; clients stop showing it.
/// Sent to all subscribers of the thread, including the one that answered. Not sent for
/// `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerRequestResolvedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// JSON-RPC id of the resolved request.
    pub request_id: RequestId,
    /// Outcome of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RequestDecision>,
    /// User of the connection that answered, or else the name of its client. Absent when no client
    /// answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_by: Option<String>,
}

open_enum! {
    /// Outcome of a server request.
    pub enum RequestDecision {
        /// Approved once.
        Accept = "accept",
        /// Approved, and for the same action until the session ends.
        AcceptForSession = "acceptForSession",
        /// Approved, and permanently by a rule.
        AcceptWithRule = "acceptWithRule",
        /// Approved in part: hunk by hunk.
        AcceptHunks = "acceptHunks",
        /// Declined; the turn continues.
        Decline = "decline",
        /// Declined, and the turn ends.
        Cancel = "cancel",
        /// Answered with content instead of a decision.
        Answered = "answered",
        /// The client could not answer.
        Failed = "failed",
        /// No client answered before the timeout.
        Expired = "expired",
        /// The answer is no longer needed.
        Withdrawn = "withdrawn",
    }
}

/// `item/commandExecution/requestApproval`: requests approval to run a command or to write to its
/// stdin. The command waits for the response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionRequestApprovalParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// Item of the command.
    pub item_id: ItemId,
    /// Time of the first request, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// Permissions that the command needs beyond its sandbox; null if none. Omitted for clients
    /// without `experimentalApi`.
    #[schemars(extend("x-experimental" = true))]
    pub additional_permissions: Option<AdditionalPermissionProfile>,
    /// Distinguishes several requests about one item: its sub-commands, or input to its stdin. Null
    /// for an ordinary command.
    pub approval_id: Option<String>,
    /// Decisions to offer, in this order; null leaves the choice to the client. Omitted for clients
    /// without `experimentalApi`.
    #[schemars(extend("x-experimental" = true))]
    pub available_decisions: Option<Vec<CommandExecutionApprovalDecision>>,
    /// Command line to display; null if the request is not about one.
    pub command: Option<String>,
    /// Likely purpose of each part of the command, for display only; null if unknown.
    pub command_actions: Option<Vec<CommandAction>>,
    /// Working directory of the command; null if unknown.
    pub cwd: Option<String>,
    /// Environment in which the command would run; null if none is named.
    pub environment_id: Option<String>,
    /// Whether the request is about a command or about input to its stdin. Defaults to `command`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub kind: CommandExecutionApprovalKind,
    /// Network access that the command needs. If set, the request is about this access; otherwise
    /// null.
    pub network_approval_context: Option<NetworkApprovalContext>,
    /// Command prefix that a new rule would allow; null if no rule is offered. The client returns
    /// it in `acceptWithExecpolicyAmendment` to add the rule.
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    /// Rules for hosts that `applyNetworkPolicyAmendment` could add; null if none is offered.
    pub proposed_network_policy_amendments: Option<Vec<NetworkPolicyAmendment>>,
    /// Human-readable reason why approval is needed; null if not given.
    pub reason: Option<String>,
}

/// Response to `item/commandExecution/requestApproval`. An error or an unreadable response counts
/// as `decline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionRequestApprovalResponse {
    /// Decision of the user.
    pub decision: CommandExecutionApprovalDecision,
}

/// `item/fileChange/requestApproval`: requests approval to change files. The changes are in the
/// item, which the server has already sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeRequestApprovalParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// Item of the file change.
    pub item_id: ItemId,
    /// Time of the first request, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// Directory to which the agent requests write access until the session ends; null if the
    /// request is only about this change.
    pub grant_root: Option<String>,
    /// Human-readable reason why approval is needed; null if not given.
    pub reason: Option<String>,
    /// Hunks of the changes, in their order, to accept by `acceptHunks`. Only clients with the
    /// extension `raddle/hunks` receive them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<ProposedHunk>>,
}

/// A hunk that the user may accept or drop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposedHunk {
    /// Path of the file, as in the item.
    pub path: String,
    /// The hunk. A change that can only be accepted as a whole, such as that of a binary file, is
    /// one hunk without lines.
    #[serde(flatten)]
    pub hunk: DiffHunk,
}

/// Response to `item/fileChange/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeRequestApprovalResponse {
    /// Decision of the user.
    pub decision: FileChangeApprovalDecision,
}

/// `item/permissions/requestApproval`: requests permissions beyond the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequestApprovalParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// Item that needs the permissions.
    pub item_id: ItemId,
    /// Working directory of the agent.
    pub cwd: String,
    /// Requested permissions on files and on the network.
    pub permissions: RequestPermissionProfile,
    /// Time of the first request, in milliseconds since the epoch.
    pub started_at_ms: i64,
    /// Environment for which the permissions are requested; null if none is named.
    pub environment_id: Option<String>,
    /// Human-readable reason for the request; null if not given.
    pub reason: Option<String>,
}

/// Response to `item/permissions/requestApproval`. An error grants nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsRequestApprovalResponse {
    /// Granted permissions: all of the requested ones, some, or none.
    pub permissions: GrantedPermissionProfile,
    /// Lifetime of the grant. Defaults to `turn`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub scope: PermissionGrantScope,
    /// True requires a review of each further command of the turn, even one that the sandbox would
    /// allow. Null means false.
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
    /// Item that asks the questions.
    pub item_id: ItemId,
    /// Whether the turn waits for the response.
    pub is_blocking: bool,
    /// Questions to ask, in this order.
    pub questions: Vec<ToolRequestUserInputQuestion>,
    /// Milliseconds until the request resolves itself; null if it does not. Deprecated: use
    /// `isBlocking`.
    pub auto_resolution_ms: Option<u64>,
}

/// Response to `item/tool/requestUserInput`. An error counts as no answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputResponse {
    /// Answers by question id. Omitted questions stay unanswered.
    pub answers: BTreeMap<String, ToolRequestUserInputAnswer>,
}

/// `item/tool/call`: runs a tool that the client offered in `dynamicTools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallParams {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// Id that the model gave this call; the same as the item's id.
    pub call_id: String,
    /// Arguments from the model: any JSON, usually an object.
    pub arguments: Value,
    /// Name of the tool.
    pub tool: String,
    /// Namespace of the tool; null if it has none.
    pub namespace: Option<String>,
}

/// Response to `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallResponse {
    /// Output for the model, in this order.
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    /// Whether the tool succeeded. If false, the item ends as `failed`.
    pub success: bool,
}

externally_tagged! {
    /// Decision of the user about a command.
    pub enum CommandExecutionApprovalDecision {
        /// Run the command once.
        Accept = "accept",
        /// Run the command, and do not ask again for the same command in this session.
        AcceptForSession = "acceptForSession",
        /// Run the command, and add a rule that allows commands like it permanently.
        AcceptWithExecpolicyAmendment(ExecpolicyAmendmentDecision) = "acceptWithExecpolicyAmendment",
        /// Add a rule that allows or denies the host, and apply it.
        ApplyNetworkPolicyAmendment(NetworkPolicyAmendmentDecision) = "applyNetworkPolicyAmendment",
        /// Do not run the command. The model is informed, and the turn continues.
        Decline = "decline",
        /// Do not run the command, and end the turn as interrupted.
        Cancel = "cancel",
    }
}

open_enum! {
    /// Subject of a command approval.
    pub enum CommandExecutionApprovalKind or Command {
        /// A command to run.
        Command = "command",
        /// Input to the stdin of an open terminal.
        WriteStdin = "writeStdin",
    }
}

externally_tagged! {
    /// Decision of the user about a file change.
    pub enum FileChangeApprovalDecision {
        /// Apply the change once.
        Accept = "accept",
        /// Apply the change, and do not ask again for these files in this session.
        AcceptForSession = "acceptForSession",
        /// Apply the accepted hunks. The model is informed of all others, and the turn continues.
        AcceptHunks(AcceptHunksDecision) = "acceptHunks",
        /// Do not apply the change. The model is informed, and the turn continues.
        Decline = "decline",
        /// Do not apply the change, and end the turn as interrupted.
        Cancel = "cancel",
    }
}

/// One question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputQuestion {
    /// Id of the question, unique within the request; the key of its answer.
    pub id: String,
    /// Short heading of the question.
    pub header: String,
    /// Full text of the question.
    pub question: String,
    /// Whether the user may type an answer instead of choosing an option. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_other: bool,
    /// Whether to hide the text that the user types. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub is_secret: bool,
    /// Possible answers; null asks for free text.
    pub options: Option<Vec<ToolRequestUserInputOption>>,
}

/// The user's answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputAnswer {
    /// Labels of the chosen options, or the typed text. Empty if the user gave no answer.
    pub answers: Vec<String>,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolRequestUserInputOption {
    /// Effect of choosing the option.
    pub description: String,
    /// Short text to display; the client returns it if chosen.
    pub label: String,
}

/// Body of the decision `acceptWithExecpolicyAmendment`: run the command and add a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExecpolicyAmendmentDecision {
    /// Command prefix, word by word. Commands that start with it need no further approval.
    #[serde(rename = "execpolicy_amendment")]
    pub execpolicy_amendment: Vec<String>,
}

/// Body of the decision `applyNetworkPolicyAmendment`: allow or deny a host permanently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyAmendmentDecision {
    /// The host, and whether the rule allows or denies it.
    #[serde(rename = "network_policy_amendment")]
    pub network_policy_amendment: NetworkPolicyAmendment,
}

/// Body of the decision `acceptHunks`: apply a part of a change. If no hunk is accepted, the change is
/// declined. If the decisions do not match the hunks of the request, nothing is applied, and the
/// request ends as `failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptHunksDecision {
    /// Decisions on hunks, at most one on each. A hunk without one is dropped.
    pub hunks: Vec<HunkDecision>,
}

/// Decision of the user about a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HunkDecision {
    /// Id of the hunk.
    pub id: String,
    /// Whether to apply the hunk.
    pub accept: bool,
    /// Comment of the user for the model. Null means none.
    #[serde(default)]
    pub comment: Option<String>,
    /// Text in place of the new lines of an accepted hunk, with its line ends. Null keeps the new
    /// lines. A file that is deleted, and a hunk without lines, have nothing to replace.
    #[serde(default)]
    pub replacement: Option<String>,
}
