//! Turns: starting, steering, interrupting and reviewing them, their notifications, and their
//! errors.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `turn/start`, which sends input to a thread and may change the thread's settings.
/// While a turn is running, the input joins that turn, as with `turn/steer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartParams {
    /// The thread that receives the input.
    pub thread_id: ThreadId,
    /// Input of the user, in order; an empty list is accepted. Its text may have at most 1048576
    /// characters in total.
    pub input: Vec<UserInput>,
    /// Additional text for the model, keyed by a source name that the client chooses.
    #[schemars(extend("x-experimental" = true))]
    pub additional_context: Option<BTreeMap<String, AdditionalContextEntry>>,
    /// Approval policy from this turn on; null keeps the thread's policy.
    pub approval_policy: Option<AskForApproval>,
    /// Reviewer of approval requests from this turn on; null keeps the thread's reviewer.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Id of this message, chosen by the client; returned as `clientId` of the user message item.
    pub client_user_message_id: Option<String>,
    /// Collaboration mode from this turn on. Its settings take precedence over `model` and
    /// `effort`.
    #[schemars(extend("x-experimental" = true))]
    pub collaboration_mode: Option<CollaborationMode>,
    /// Working directory from this turn on; null keeps the thread's directory.
    pub cwd: Option<String>,
    /// Security-research programme that this turn requests; the request alone grants nothing. Null
    /// leaves the choice to the server.
    #[schemars(extend("x-experimental" = true))]
    pub cyber_access_program: Option<CyberAccessProgram>,
    /// All plugins disabled for the thread; null keeps the list, `[]` enables all plugins.
    pub disabled_plugin_ids: Option<Vec<String>>,
    /// Reasoning effort from this turn on; null keeps the thread's effort.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// Environments in which tools may run, from this turn on; the first is the primary one. Null
    /// keeps the thread's environments, `[]` selects none.
    #[schemars(extend("x-experimental" = true))]
    pub environments: Option<Vec<TurnEnvironmentParams>>,
    /// Model from this turn on; null keeps the thread's model.
    pub model: Option<String>,
    /// Model provider from this turn on; null keeps the thread's provider. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Accepted from older clients and ignored.
    #[schemars(extend("x-experimental" = true))]
    pub multi_agent_mode: Option<MultiAgentMode>,
    /// JSON Schema that the last agent message of this turn must match. It does not apply to later
    /// turns.
    pub output_schema: Option<Value>,
    /// The turn on whose behalf this one runs, often in another thread; null when the user started
    /// it. Ignored when the input joins a running turn.
    pub parent_turn_id: Option<TurnId>,
    /// Id of a permission profile to use from this turn on. Cannot be combined with
    /// `sandboxPolicy`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Deprecated: tone of the agent. Instructions already given to the thread do not change.
    pub personality: Option<Personality>,
    /// Metadata that the client attaches to the turn's model calls. It replaces the metadata set
    /// before; an empty map clears it, null keeps it.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata: Option<BTreeMap<String, String>>,
    /// Metadata to merge into the current metadata, applied after `responsesapiClientMetadata`.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata_patch: Option<BTreeMap<String, String>>,
    /// The first turn in the chain of turns that led to this one; null makes the new turn its own
    /// root. Ignored when the input joins a running turn.
    pub root_turn_id: Option<TurnId>,
    /// All root directories of the workspace from this turn on, as absolute paths; null keeps the
    /// current ones.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// Sandbox policy from this turn on; null keeps the thread's policy.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// Service tier from this turn on; absent keeps the thread's tier.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// Service tier for this turn only, where `default` is the standard tier; null uses the
    /// thread's tier. Ignored when the input joins a running turn.
    pub service_tier_for_turn: Option<String>,
    /// Reasoning summary mode from this turn on; null keeps the thread's mode.
    pub summary: Option<ReasoningSummary>,
    /// Output of a tool that the client ran, submitted together with the input.
    pub tool_output: Option<TurnToolOutput>,
    /// Reason why the client starts the turn, such as `user`. Ignored when the input joins a
    /// running turn.
    pub turn_trigger: Option<String>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `turn/start`. It is sent before `turn/started`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartResponse {
    /// The turn that received the input: in progress, without items and without a start time. When
    /// the input joined a running turn, this is that turn.
    pub turn: Turn,
}

/// Params of `turn/steer`, which adds input to the running turn. Rejected when no turn is running,
/// when another turn is running, or when the running turn is a review or a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerParams {
    /// The thread whose turn receives the input.
    pub thread_id: ThreadId,
    /// The turn that the client expects to be running; the error names the running turn if it
    /// differs.
    pub expected_turn_id: TurnId,
    /// Input of the user, in order; it must not be empty and has the size limit of `turn/start`.
    pub input: Vec<UserInput>,
    /// Additional text for the model, keyed by a source name that the client chooses.
    #[schemars(extend("x-experimental" = true))]
    pub additional_context: Option<BTreeMap<String, AdditionalContextEntry>>,
    /// Id of this message, chosen by the client; returned as `clientId` of the user message item.
    pub client_user_message_id: Option<String>,
    /// Metadata that the client attaches to the turn's further model calls. It replaces the
    /// metadata set before; an empty map clears it, null keeps it.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata: Option<BTreeMap<String, String>>,
    /// Metadata to merge into the current metadata, applied after `responsesapiClientMetadata`.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata_patch: Option<BTreeMap<String, String>>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `turn/steer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerResponse {
    /// The running turn, which received the input.
    pub turn_id: TurnId,
}

/// Params of `turn/interrupt`, which ends the running turn early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnInterruptParams {
    /// The thread whose turn to interrupt.
    pub thread_id: ThreadId,
    /// The turn to interrupt; an empty id means a turn that is still starting.
    pub turn_id: TurnId,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `turn/interrupt`, returned once the turn has stopped; `turn/completed` follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnInterruptResponse {}

/// Params of `review/start`, which runs a code review as a turn of the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewStartParams {
    /// The thread to run the review in.
    pub thread_id: ThreadId,
    /// Changes to review.
    pub target: ReviewTarget,
    /// Where the review runs; null means `inline`, the only supported value.
    pub delivery: Option<ReviewDelivery>,
    /// Idempotency key, chosen by the client: the server executes repeated requests with the same
    /// key once. Requires the extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `review/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewStartResponse {
    /// The thread in which the review runs; always the thread of the request.
    pub review_thread_id: ThreadId,
    /// The review's turn, with one user message that describes the review target.
    pub turn: Turn,
}

/// Params of `turn/settings/update`, which changes settings of the running turn. Later turns keep
/// the thread's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSettingsUpdateParams {
    /// The thread the turn belongs to.
    pub thread_id: ThreadId,
    /// The running turn to change.
    pub turn_id: TurnId,
    /// Reviewer of later approval requests; null keeps the reviewer.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Reasoning effort; null keeps the effort.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// Model for further calls; null keeps the model.
    pub model: Option<String>,
    /// Service tier for further calls. On the wire, absence keeps it and null clears it.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// Reasoning summary mode; null keeps the mode.
    pub summary: Option<ReasoningSummary>,
}

/// Result of `turn/settings/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSettingsUpdateResponse {
    /// Whether the change was applied to a running turn.
    pub status: TurnSettingsUpdateStatus,
}

/// `turn/started`: a turn has started. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn, with status `inProgress`.
    pub turn: Turn,
}

/// `turn/completed`: a turn has ended, successfully or not. Sent to the thread's subscribers, after
/// the notifications of its items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnCompletedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn in its final state. Its items contain at most the final agent message;
    /// `item/completed` has sent the others.
    pub turn: Turn,
}

/// `turn/diff/updated`: the file changes of a turn have changed. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnDiffUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that made the changes.
    pub turn_id: TurnId,
    /// All changes of the turn so far as one unified diff; it replaces the previous diff.
    pub diff: String,
}

/// `turn/plan/updated`: the agent has written or revised its plan. Sent to the thread's
/// subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnPlanUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that follows the plan.
    pub turn_id: TurnId,
    /// The whole plan in order; it replaces the previous plan.
    pub plan: Vec<TurnPlanStep>,
    /// Reason for the change, if the agent gave one.
    pub explanation: Option<String>,
}

/// `error`: an error occurred in a turn. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn in which the error occurred.
    pub turn_id: TurnId,
    /// Details of the error.
    pub error: TurnError,
    /// True if the server retries and the turn continues; false if `turn/completed` follows with
    /// this error.
    pub will_retry: bool,
}

/// `warning`: a warning for the user that does not stop the turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WarningNotification {
    /// The thread it concerns; null when it concerns no particular thread.
    pub thread_id: Option<ThreadId>,
    /// Warning text for the user.
    pub message: String,
    /// The nearly spent budget, if the warning is about a budget. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpending>,
}

/// `deprecationNotice`: the client used a deprecated feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprecationNoticeNotification {
    /// Deprecated feature, in one line.
    pub summary: String,
    /// Reason for the deprecation, or the replacement.
    pub details: Option<String>,
}

open_enum! {
    /// How much of its reasoning the model summarises for the user.
    pub enum ReasoningSummary {
        /// The model provider chooses.
        Auto = "auto",
        /// Short summaries only.
        Concise = "concise",
        /// Long, detailed summaries.
        Detailed = "detailed",
        /// No summaries at all.
        None = "none",
    }
}

externally_tagged! {
    /// When the agent may delegate work to other agents.
    pub enum MultiAgentMode or ExplicitRequestOnly {
        /// Only if the user asks for it. This is the default.
        ExplicitRequestOnly = "explicitRequestOnly",
        /// Whenever the agent considers it useful.
        Proactive = "proactive",
        /// As described by the custom text.
        Custom(String) = "custom",
    }
}

/// An environment in which tools run, as a client selects it for a thread or a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnvironmentParams {
    /// Working directory, in the path syntax of that environment.
    pub cwd: String,
    /// Id of the environment.
    pub environment_id: String,
    /// Root directories of the workspace in that environment. Null means `cwd` alone.
    pub runtime_workspace_roots: Option<Vec<String>>,
}

open_enum! {
    /// How much of a turn its `items` contain. `thread/turns/list` lets the client choose; the
    /// default there is `summary`.
    pub enum TurnItemsView or Full {
        /// No items: `items` is empty regardless of the turn's content.
        NotLoaded = "notLoaded",
        /// Only the first user message and the final agent message.
        Summary = "summary",
        /// Every item the thread's history holds for the turn.
        Full = "full",
    }
}

/// One unit of work in a thread, started by input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Id of the turn; ids generated by the server are UUIDs of version 7.
    pub id: TurnId,
    /// Items of the turn, in order; `itemsView` says how many of them are included.
    pub items: Vec<ThreadItem>,
    /// Current status of the turn.
    pub status: TurnStatus,
    /// End time, in seconds since the epoch; null while the turn runs, or when a crash ended it.
    pub completed_at: Option<i64>,
    /// Duration in milliseconds; null while the turn runs or when unknown.
    pub duration_ms: Option<i64>,
    /// Error that made the turn fail or end early; null otherwise.
    pub error: Option<TurnError>,
    /// How much of the turn `items` contains; absent means `full`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub items_view: TurnItemsView,
    /// The first turn in the chain of turns that led to this one, possibly itself; null when
    /// unknown. Pass it as `rootTurnId` of any turn started on behalf of this one.
    pub root_turn_id: Option<TurnId>,
    /// Start time, in seconds since the epoch; null in the result of `turn/start`.
    pub started_at: Option<i64>,
}

open_enum! {
    /// A security-research programme that a turn may request. The model provider decides which
    /// accounts may use it.
    pub enum CyberAccessProgram {
        /// The ordinary access of the account.
        Standard = "standard",
        /// The programme named "Daybreak blue".
        DaybreakBlue = "daybreakBlue",
        /// The programme named "Daybreak red".
        DaybreakRed = "daybreakRed",
    }
}

/// Output of a tool that the client ran, submitted with `turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnToolOutput {
    /// Name of the tool.
    pub name: String,
    /// Output of the tool.
    pub output: FunctionCallOutputBody,
    /// Namespace of the tool; null if it has none.
    pub namespace: Option<String>,
    /// Whether the output stays in the model's context in later turns. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub retain: bool,
}

tagged! {
    /// Changes that `review/start` reviews.
    pub enum ReviewTarget by "type" {
        /// All uncommitted changes, including untracked files.
        UncommittedChanges = "uncommittedChanges",
        /// Changes of the current branch compared with another branch.
        BaseBranch(BaseBranchReviewTarget) = "baseBranch",
        /// Changes of one commit.
        Commit(CommitReviewTarget) = "commit",
        /// Changes described by the client in its own words.
        Custom(CustomReviewTarget) = "custom",
    }
}

/// A review against a branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BaseBranchReviewTarget {
    /// The branch to compare with.
    pub branch: String,
}

/// A review of one commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitReviewTarget {
    /// Hash of the commit.
    pub sha: String,
    /// Title to display for the commit, such as its first line.
    pub title: Option<String>,
}

/// A review described in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomReviewTarget {
    /// Review instructions, as text for the model.
    pub instructions: String,
}

open_enum! {
    /// Thread in which a review runs.
    pub enum ReviewDelivery {
        /// The thread of the request.
        Inline = "inline",
    }
}

open_enum! {
    /// Outcome of a `turn/settings/update`.
    pub enum TurnSettingsUpdateStatus {
        /// The turn uses the new values from its next step; a step already in progress keeps the
        /// old ones.
        Applied = "applied",
        /// Nothing changed, because the named turn is no longer running.
        TargetUnavailable = "targetUnavailable",
    }
}

/// One step of the agent's plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnPlanStep {
    /// Progress of the step.
    pub status: TurnPlanStepStatus,
    /// Description of the step.
    pub step: String,
}

/// Error of a turn, or the reason why a turn rejected a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// Error text for the user.
    pub message: String,
    /// More details, such as the response of the model provider.
    pub additional_details: Option<String>,
    /// Machine-readable kind of the error; null when it has none.
    pub codex_error_info: Option<CodexErrorInfo>,
    /// Verdict of the model provider on a turn it judged misaligned, and how to continue; null for
    /// other errors.
    pub misalignment: Option<MisalignmentErrorDetails>,
    /// Class of the error, by the action that may resolve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// Time of the next retry in milliseconds since the epoch, or if there is none, the time from
    /// which the provider accepts requests again. Absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<i64>,
    /// The spent budget, if it ended the turn. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpending>,
}

open_enum! {
    /// Class of an error, by the action that may resolve it.
    pub enum ErrorClass {
        /// Temporary: a retry may succeed.
        Transient = "transient",
        /// Too many calls: a retry may succeed at `retryAtMs`, or soon.
        RateLimited = "rateLimited",
        /// The quota is used up: the user must pay, raise the limit, or wait for long.
        Quota = "quota",
        /// Missing or invalid credentials or certificates: the user or operator must replace them.
        Auth = "auth",
        /// A policy forbids the request.
        Policy = "policy",
        /// The history must become shorter.
        ContextOverflow = "contextOverflow",
        /// The same request will be rejected again.
        BadRequest = "badRequest",
        /// The model provider is unreachable or overloaded.
        Unavailable = "unavailable",
        /// None of these: a fault of Raddle, or a response that cannot be interpreted.
        Internal = "internal",
    }
}

/// Verdict of the model provider on a turn it judged misaligned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MisalignmentErrorDetails {
    /// Explanation of the provider, for the user; without it, clients must not offer to continue.
    pub detailed_explanation: Option<String>,
    /// The provider's own name for the kind of misalignment; new values may appear.
    pub error_type: Option<String>,
    /// Subject of the verdict, under the provider's own name.
    pub review_target: Option<String>,
    /// Input to send next if the user wants to continue.
    pub steer: Option<MisalignmentSteer>,
}

/// Input that continues the work after a turn was judged misaligned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MisalignmentSteer {
    /// Text of the input to send.
    pub message: String,
}

open_enum! {
    /// Status of a turn.
    pub enum TurnStatus {
        /// The turn ended by itself.
        Completed = "completed",
        /// The turn was stopped by the client, by a cancelled approval, or by a shutdown of the
        /// server.
        Interrupted = "interrupted",
        /// The turn ended with an error, found in `error`.
        Failed = "failed",
        /// The turn is running, or is waiting for an answer.
        InProgress = "inProgress",
    }
}

/// Tokens used, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsageBreakdown {
    /// Input tokens read from the provider's cache.
    pub cached_input_tokens: i64,
    /// All tokens sent to the model, including cached ones.
    pub input_tokens: i64,
    /// All tokens generated by the model, including reasoning.
    pub output_tokens: i64,
    /// Output tokens used for reasoning.
    pub reasoning_output_tokens: i64,
    /// Sum of input and output tokens.
    pub total_tokens: i64,
    /// Input tokens written to the provider's cache. Defaults to 0.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cache_write_input_tokens: i64,
}

open_enum! {
    /// Progress of a plan step.
    pub enum TurnPlanStepStatus {
        /// Work on the step has not started.
        Pending = "pending",
        /// The agent is working on the step.
        InProgress = "inProgress",
        /// The step is done.
        Completed = "completed",
    }
}

externally_tagged! {
    /// Kind of an error: a bare name, or an object with one member that carries details. Where the
    /// model provider answered with an HTTP status, the object has it as `httpStatusCode`.
    pub enum CodexErrorInfo {
        /// The thread no longer fits into the model's context window.
        ContextWindowExceeded = "contextWindowExceeded",
        /// The budget of the session is spent.
        SessionBudgetExceeded = "sessionBudgetExceeded",
        /// The account has used up its quota.
        UsageLimitExceeded = "usageLimitExceeded",
        /// Too many calls in too short a time.
        RateLimitExceeded = "rateLimitExceeded",
        /// The provider's flex tier has no capacity now.
        FlexUnavailable = "flexUnavailable",
        /// The model provider is overloaded.
        ServerOverloaded = "serverOverloaded",
        /// The provider does not know the model.
        ModelNotFound = "modelNotFound",
        /// The provider has no capacity for the checks its policy requires.
        PolicyCapacityUnavailable = "policyCapacityUnavailable",
        /// The provider's security policy stopped the turn.
        CyberPolicy = "cyberPolicy",
        /// The provider judged the agent's actions misaligned; see `misalignment` of the error.
        MisalignmentPolicyViolation = "misalignmentPolicyViolation",
        /// The turn ended because too many approvals were declined.
        TooManyDenials = "tooManyDenials",
        /// The model provider had an internal error.
        InternalServerError = "internalServerError",
        /// The provider rejected the credentials.
        Unauthorized = "unauthorized",
        /// The provider rejected the request as malformed.
        BadRequest = "badRequest",
        /// The thread could not be reverted to an earlier turn.
        ThreadRollbackFailed = "threadRollbackFailed",
        /// The sandbox could not be set up, or failed.
        SandboxError = "sandboxError",
        /// None of the other kinds.
        Other = "other",
        /// The connection to the model provider could not be established, or it broke.
        HttpConnectionFailed(HttpFailure) = "httpConnectionFailed",
        /// The response stream of the model could not be opened.
        ResponseStreamConnectionFailed(HttpFailure) = "responseStreamConnectionFailed",
        /// The response stream of the model ended before it was complete.
        ResponseStreamDisconnected(HttpFailure) = "responseStreamDisconnected",
        /// The server has used up its retries.
        ResponseTooManyFailedAttempts(HttpFailure) = "responseTooManyFailedAttempts",
        /// The running turn accepts no further input; `turnKind` says which kind it is.
        ActiveTurnNotSteerable(NotSteerable) = "activeTurnNotSteerable",
    }
}

open_enum! {
    /// Kind of turn that accepts no further input while it runs.
    pub enum NonSteerableTurnKind {
        /// A review, started by `review/start`.
        Review = "review",
        /// A compaction, started by `thread/compact/start`.
        Compact = "compact",
    }
}

/// Body of the error `activeTurnNotSteerable`: the running turn accepts no further input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotSteerable {
    /// Kind of the running turn.
    pub turn_kind: NonSteerableTurnKind,
}

/// Details of a failed call to the model provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpFailure {
    /// HTTP status; null if the provider sent none.
    pub http_status_code: Option<u16>,
}
