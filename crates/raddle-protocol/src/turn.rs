//! Turns: how they are started, steered, interrupted and reviewed, what is told of them, and how they fail.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `turn/start`: hands input to a thread, and with it any change of the thread's settings.
/// While a turn is running the input joins that turn instead, as `turn/steer` would do it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartParams {
    /// The thread that gets the input.
    pub thread_id: ThreadId,
    /// What the user says, in order; an empty list is accepted.
    /// The text in it may have at most 1048576 characters in all.
    pub input: Vec<UserInput>,
    /// Extra text for the model beside the user's input, keyed by a name the client chooses for its source.
    #[schemars(extend("x-experimental" = true))]
    pub additional_context: Option<BTreeMap<String, AdditionalContextEntry>>,
    /// When to ask before acting, from this turn on; null keeps the thread's policy.
    pub approval_policy: Option<AskForApproval>,
    /// Who answers approval requests, from this turn on; null keeps the thread's reviewer.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// The client's own id for this message; it comes back as `clientId` of the user message item.
    pub client_user_message_id: Option<String>,
    /// The mode to work in. Its settings win over `model` and `effort` of this request.
    #[schemars(extend("x-experimental" = true))]
    pub collaboration_mode: Option<CollaborationMode>,
    /// The folder to work in, from this turn on; null keeps the thread's folder.
    pub cwd: Option<String>,
    /// The security-research programme this turn asks to run under; asking for one grants nothing.
    /// Null leaves the choice to the server.
    #[schemars(extend("x-experimental" = true))]
    pub cyber_access_program: Option<CyberAccessProgram>,
    /// The plugins switched off for the thread, as a whole list; null keeps the list, `[]` switches all on.
    pub disabled_plugin_ids: Option<Vec<String>>,
    /// How hard the model should think, from this turn on; null keeps the thread's effort.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// Where tools may run, from this turn on; the first one is the turn's own.
    /// Null keeps the thread's environments, `[]` gives the turn none.
    #[schemars(extend("x-experimental" = true))]
    pub environments: Option<Vec<TurnEnvironmentParams>>,
    /// The model to use, from this turn on; null keeps the thread's model.
    pub model: Option<String>,
    /// The provider to ask, from this turn on; null keeps the thread's provider. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Accepted for old clients and without effect.
    #[schemars(extend("x-experimental" = true))]
    pub multi_agent_mode: Option<MultiAgentMode>,
    /// A JSON Schema that the last agent message of this turn must fit. It does not carry over to later turns.
    pub output_schema: Option<Value>,
    /// The turn on whose behalf this one runs, often in another thread; null when the user began it.
    /// Without effect when the input joins a running turn.
    pub parent_turn_id: Option<TurnId>,
    /// The id of a permission profile to use from this turn on; not allowed together with `sandboxPolicy`.
    #[schemars(extend("x-experimental" = true))]
    pub permissions: Option<String>,
    /// Deprecated: the tone asked of the model. It leaves instructions already given to the thread as they are.
    pub personality: Option<Personality>,
    /// Metadata the client attaches to the turn's calls to the model provider.
    /// It takes the place of what the client set before; an empty map clears that, null keeps it.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata: Option<BTreeMap<String, String>>,
    /// Metadata to add to what is set, applied after `responsesapiClientMetadata`.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata_patch: Option<BTreeMap<String, String>>,
    /// The turn this work goes back to, over however many steps; null makes the new turn its own root.
    /// Without effect when the input joins a running turn.
    pub root_turn_id: Option<TurnId>,
    /// The workspace folders from this turn on, as a whole list of absolute paths; null keeps the present ones.
    #[schemars(extend("x-experimental" = true))]
    pub runtime_workspace_roots: Option<Vec<String>>,
    /// What tools may touch, from this turn on; null keeps the thread's policy.
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The provider's service tier to use from this turn on; absent keeps the thread's tier.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// A service tier for this turn alone, where `default` is the standard one; null uses the thread's tier.
    /// Without effect when the input joins a running turn.
    pub service_tier_for_turn: Option<String>,
    /// How much of the model's reasoning to summarise, from this turn on; null keeps the thread's choice.
    pub summary: Option<ReasoningSummary>,
    /// The output of a tool the client ran, handed in together with the input.
    pub tool_output: Option<TurnToolOutput>,
    /// What made the client start the turn, such as `user`. Without effect when the input joins a running turn.
    pub turn_trigger: Option<String>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `turn/start`. It is sent before `turn/started`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartResponse {
    /// The turn that took the input: in progress, without items, and not yet given a start time.
    /// When the input joined a running turn, this is that turn.
    pub turn: Turn,
}

/// Params of `turn/steer`: adds input to the running turn.
/// Refused when no turn runs, when another one does, or when it is a review or a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerParams {
    /// The thread whose turn gets the input.
    pub thread_id: ThreadId,
    /// The turn the client believes is running; a different one is named in the error.
    pub expected_turn_id: TurnId,
    /// What the user adds, in order; it may not be empty and has the size limit of `turn/start`.
    pub input: Vec<UserInput>,
    /// Extra text for the model beside the user's input, keyed by a name the client chooses for its source.
    #[schemars(extend("x-experimental" = true))]
    pub additional_context: Option<BTreeMap<String, AdditionalContextEntry>>,
    /// The client's own id for this message; it comes back as `clientId` of the user message item.
    pub client_user_message_id: Option<String>,
    /// Metadata the client attaches to the turn's further calls to the model provider.
    /// It takes the place of what the client set before; an empty map clears that, null keeps it.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata: Option<BTreeMap<String, String>>,
    /// Metadata to add to what is set, applied after `responsesapiClientMetadata`.
    #[schemars(extend("x-experimental" = true))]
    pub responsesapi_client_metadata_patch: Option<BTreeMap<String, String>>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `turn/steer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSteerResponse {
    /// The running turn, which now has the input.
    pub turn_id: TurnId,
}

/// Params of `turn/interrupt`: ends the running turn early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnInterruptParams {
    /// The thread whose turn is to end.
    pub thread_id: ThreadId,
    /// The turn to end; an empty id means whatever is still starting up.
    pub turn_id: TurnId,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `turn/interrupt`, sent once the turn has been stopped; `turn/completed` follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnInterruptResponse {}

/// Params of `review/start`: runs a code review as a turn of the thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewStartParams {
    /// The thread to review in.
    pub thread_id: ThreadId,
    /// What to review.
    pub target: ReviewTarget,
    /// Where the review runs; null means `inline`, the only way there is.
    pub delivery: Option<ReviewDelivery>,
    /// The client's own id for this request, so that it is done once however often it is sent. Needs the
    /// extension `raddle/idempotency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub client_request_id: Option<String>,
}

/// Result of `review/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewStartResponse {
    /// The thread the review runs in; always the one that was asked.
    pub review_thread_id: ThreadId,
    /// The review's turn, holding one user message that says what is reviewed.
    pub turn: Turn,
}

/// Params of `turn/settings/update`: changes how the running turn goes on.
/// Later turns keep the thread's settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSettingsUpdateParams {
    /// The thread the turn belongs to.
    pub thread_id: ThreadId,
    /// The running turn to change.
    pub turn_id: TurnId,
    /// Who answers approval requests asked from now on; null keeps the reviewer.
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// How hard the model should think; null keeps the effort.
    #[schemars(length(min = 1))]
    pub effort: Option<String>,
    /// The model for further calls; null keeps the model.
    pub model: Option<String>,
    /// The provider's service tier for further calls. On the wire, absence keeps it and null clears it.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub service_tier: Maybe<String>,
    /// How much of the model's reasoning to summarise; null keeps the choice.
    pub summary: Option<ReasoningSummary>,
}

/// Result of `turn/settings/update`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSettingsUpdateResponse {
    /// Whether a running turn took the change.
    pub status: TurnSettingsUpdateStatus,
}

/// `turn/started`: a turn has begun. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn, in progress.
    pub turn: Turn,
}

/// `turn/completed`: a turn has ended, well or not. Sent to the thread's subscribers, after its items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnCompletedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn as it ended.
    /// Its items are at most the final agent message; the rest was told by `item/completed`.
    pub turn: Turn,
}

/// `turn/diff/updated`: the files changed by a turn have changed again. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnDiffUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that made the changes.
    pub turn_id: TurnId,
    /// All changes of the turn so far as one unified diff; it replaces the one before.
    pub diff: String,
}

/// `turn/plan/updated`: the agent has written or revised its plan. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnPlanUpdatedNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn that follows the plan.
    pub turn_id: TurnId,
    /// The whole plan in order; it replaces the one before.
    pub plan: Vec<TurnPlanStep>,
    /// Why the plan changed, if the agent said so.
    pub explanation: Option<String>,
}

/// `error`: something went wrong in a turn. Sent to the thread's subscribers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorNotification {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// The turn it happened in.
    pub turn_id: TurnId,
    /// What went wrong.
    pub error: TurnError,
    /// True if the server tries again and the turn goes on; false if `turn/completed` follows with this error.
    pub will_retry: bool,
}

/// `warning`: something the user should know that stops nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WarningNotification {
    /// The thread it concerns; null when it concerns no one thread.
    pub thread_id: Option<ThreadId>,
    /// The text for the user.
    pub message: String,
    /// The budget that is nearly spent, if that is what it is about. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpending>,
}

/// `deprecationNotice`: the client used something that is going away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeprecationNoticeNotification {
    /// What is going away, in a line.
    pub summary: String,
    /// Why, or what to use instead.
    pub details: Option<String>,
}

open_enum! {
    /// How much of its reasoning the model should summarise for the reader.
    pub enum ReasoningSummary {
        /// The model provider chooses.
        Auto = "auto",
        /// Short summaries.
        Concise = "concise",
        /// Long summaries.
        Detailed = "detailed",
        /// No summaries.
        None = "none",
    }
}

open_enum! {
    /// How much of a turn its `items` show.
    /// In `thread/turns/list` the client asks for one; the default there is `summary`.
    pub enum TurnItemsView or Full {
        /// Nothing: `items` is empty whatever the turn holds.
        NotLoaded = "notLoaded",
        /// Only the first user message and the final agent message.
        Summary = "summary",
        /// Every item the thread's history holds for the turn.
        Full = "full",
    }
}

/// One unit of work in a thread, begun by input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// The turn's id; those the server mints are UUIDs of version 7.
    pub id: TurnId,
    /// The items shown here, in order; `itemsView` says how many that is.
    pub items: Vec<ThreadItem>,
    /// Whether it runs, or how it ended.
    pub status: TurnStatus,
    /// When it ended, in seconds since the epoch; null while it runs, or when a crash ended it.
    pub completed_at: Option<i64>,
    /// How long it ran, in milliseconds; null while it runs or when not known.
    pub duration_ms: Option<i64>,
    /// Why it failed or was cut short; null otherwise.
    pub error: Option<TurnError>,
    /// How much of the turn `items` shows; absent means `full`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub items_view: TurnItemsView,
    /// The turn this one's work goes back to, possibly itself; null when not known.
    /// Hand it on as `rootTurnId` of any turn started on this one's behalf.
    pub root_turn_id: Option<TurnId>,
    /// When it began, in seconds since the epoch; null in the result of `turn/start`.
    pub started_at: Option<i64>,
}

open_enum! {
    /// A security-research programme a turn may ask to run under. The model provider decides who may use which.
    pub enum CyberAccessProgram {
        /// No special programme.
        Standard = "standard",
        /// The programme named "Daybreak blue".
        DaybreakBlue = "daybreakBlue",
        /// The programme named "Daybreak red".
        DaybreakRed = "daybreakRed",
    }
}

/// The output of a tool that the client ran and hands in with `turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnToolOutput {
    /// The tool's name.
    pub name: String,
    /// What it returned.
    pub output: FunctionCallOutputBody,
    /// The namespace the tool belongs to; null for none.
    pub namespace: Option<String>,
    /// Whether to keep the output in what the model sees in later turns. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub retain: bool,
}

tagged! {
    /// What `review/start` looks at.
    pub enum ReviewTarget by "type" {
        /// Everything not yet committed, files git does not track included.
        UncommittedChanges = "uncommittedChanges",
        /// What the present branch changes compared with another.
        BaseBranch(BaseBranchReviewTarget) = "baseBranch",
        /// What one commit changes.
        Commit(CommitReviewTarget) = "commit",
        /// Whatever the client describes in its own words.
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
    /// The commit's hash.
    pub sha: String,
    /// A name to show for the commit, such as its first line.
    pub title: Option<String>,
}

/// A review described in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomReviewTarget {
    /// What to review and how, as text for the model.
    pub instructions: String,
}

open_enum! {
    /// Where a review runs.
    pub enum ReviewDelivery {
        /// In the thread that asked for it.
        Inline = "inline",
    }
}

open_enum! {
    /// What became of a `turn/settings/update`.
    pub enum TurnSettingsUpdateStatus {
        /// The turn uses the new values from its next step; a step already under way keeps the old ones.
        Applied = "applied",
        /// Nothing changed, because the named turn no longer runs.
        TargetUnavailable = "targetUnavailable",
    }
}

/// One step of the agent's plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnPlanStep {
    /// How far the step has come.
    pub status: TurnPlanStepStatus,
    /// What is to be done.
    pub step: String,
}

/// What went wrong in a turn, or why a turn refused a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// The text for the user.
    pub message: String,
    /// More about it, such as what the model provider answered.
    pub additional_details: Option<String>,
    /// The kind of error, for programs; null when it has none.
    pub codex_error_info: Option<CodexErrorInfo>,
    /// What the model provider said of a turn it judged misaligned, and how to go on; null for other errors.
    pub misalignment: Option<MisalignmentErrorDetails>,
    /// What may help against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// When it is tried again, if it is, or else when the provider wants to be asked again; in milliseconds
    /// since the epoch. Absent when nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<i64>,
    /// The budget that is spent, if the turn ended for that. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpending>,
}

open_enum! {
    /// What may help against an error.
    pub enum ErrorClass {
        /// It may pass by itself.
        Transient = "transient",
        /// Too many calls: it passes when `retryAtMs` says, or soon.
        RateLimited = "rateLimited",
        /// What may be used is used up: someone must pay, allow more, or wait for long.
        Quota = "quota",
        /// Credentials or certificates: someone must mend them.
        Auth = "auth",
        /// Someone's policy says no.
        Policy = "policy",
        /// The history must become shorter.
        ContextOverflow = "contextOverflow",
        /// The same request will be refused again.
        BadRequest = "badRequest",
        /// Nobody is there, or they have too much to do.
        Unavailable = "unavailable",
        /// None of these: a fault of Raddle's own, or something that cannot be understood.
        Internal = "internal",
    }
}

/// What the model provider said of a turn it judged misaligned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MisalignmentErrorDetails {
    /// The provider's explanation, for the user; without it, do not offer to go on.
    pub detailed_explanation: Option<String>,
    /// The provider's own word for the kind; new ones may come.
    pub error_type: Option<String>,
    /// What was judged, under the provider's own name for it.
    pub review_target: Option<String>,
    /// What to send as the next input if the user wants to go on.
    pub steer: Option<MisalignmentSteer>,
}

/// Input that lets the work go on after a turn was judged misaligned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MisalignmentSteer {
    /// The text to send.
    pub message: String,
}

open_enum! {
    /// Where a turn stands.
    pub enum TurnStatus {
        /// It ended by itself.
        Completed = "completed",
        /// It was stopped: by the client, by a cancelled approval, or by the server's own end.
        Interrupted = "interrupted",
        /// It ended with an error, found in `error`.
        Failed = "failed",
        /// It runs, or waits for an answer.
        InProgress = "inProgress",
    }
}

/// Tokens used, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsageBreakdown {
    /// The part of the input that was read from the provider's cache.
    pub cached_input_tokens: i64,
    /// All tokens sent to the model, cached ones included.
    pub input_tokens: i64,
    /// All tokens the model produced, reasoning included.
    pub output_tokens: i64,
    /// The part of the output that was reasoning.
    pub reasoning_output_tokens: i64,
    /// Input and output together.
    pub total_tokens: i64,
    /// The part of the input that was written to the provider's cache. Defaults to 0.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cache_write_input_tokens: i64,
}

open_enum! {
    /// How far a step of a plan has come.
    pub enum TurnPlanStepStatus {
        /// Not begun.
        Pending = "pending",
        /// Being worked on.
        InProgress = "inProgress",
        /// Done.
        Completed = "completed",
    }
}

keyed! {
    /// The kind of an error: a bare name, or an object whose one member carries more.
    /// Where the model provider answered with an HTTP status, the object has it as `httpStatusCode`.
    pub enum CodexErrorInfo {
        /// The thread no longer fits into what the model can read at once.
        ContextWindowExceeded = "contextWindowExceeded",
        /// The budget of the session is spent.
        SessionBudgetExceeded = "sessionBudgetExceeded",
        /// The account has used up its allowance.
        UsageLimitExceeded = "usageLimitExceeded",
        /// Too many calls in too short a time.
        RateLimitExceeded = "rateLimitExceeded",
        /// The provider's flex tier has no room now.
        FlexUnavailable = "flexUnavailable",
        /// The model provider has too much to do.
        ServerOverloaded = "serverOverloaded",
        /// The provider does not know the model.
        ModelNotFound = "modelNotFound",
        /// The provider has no capacity for the checks its policy demands.
        PolicyCapacityUnavailable = "policyCapacityUnavailable",
        /// The provider's security policy stopped the turn.
        CyberPolicy = "cyberPolicy",
        /// The provider judged what the agent did misaligned; see `misalignment` of the error.
        MisalignmentPolicyViolation = "misalignmentPolicyViolation",
        /// Too many approvals were refused to go on.
        TooManyDenials = "tooManyDenials",
        /// The model provider failed inside.
        InternalServerError = "internalServerError",
        /// The provider did not accept the credentials.
        Unauthorized = "unauthorized",
        /// The provider refused the request as malformed.
        BadRequest = "badRequest",
        /// The thread could not be taken back to an earlier turn.
        ThreadRollbackFailed = "threadRollbackFailed",
        /// The sandbox could not be set up, or failed.
        SandboxError = "sandboxError",
        /// None of the other kinds.
        Other = "other",
        /// No connection to the model provider came about, or it broke.
        HttpConnectionFailed(HttpFailure) = "httpConnectionFailed",
        /// The stream of the model's answer could not be opened.
        ResponseStreamConnectionFailed(HttpFailure) = "responseStreamConnectionFailed",
        /// The stream of the model's answer broke off before its end.
        ResponseStreamDisconnected(HttpFailure) = "responseStreamDisconnected",
        /// The server gave up after trying as often as it may.
        ResponseTooManyFailedAttempts(HttpFailure) = "responseTooManyFailedAttempts",
        /// The running turn takes no further input; `turnKind` says which kind it is.
        ActiveTurnNotSteerable(NotSteerable) = "activeTurnNotSteerable",
    }
}

open_enum! {
    /// A kind of turn that takes no further input while it runs.
    pub enum NonSteerableTurnKind {
        /// A review, begun by `review/start`.
        Review = "review",
        /// A compaction, begun by `thread/compact/start`.
        Compact = "compact",
    }
}

/// Body of the error `activeTurnNotSteerable`: the running turn takes no further input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotSteerable {
    /// What kind of turn is running.
    pub turn_kind: NonSteerableTurnKind,
}

/// What is known of a failed call to the model provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpFailure {
    /// The HTTP status, or null if none came.
    pub http_status_code: Option<u16>,
}
