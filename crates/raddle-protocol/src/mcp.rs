//! MCP servers: their state, sign-in, resources and tools, and the questions they ask the user.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `mcpServer/oauth/login`, which starts an OAuth sign-in to one MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginParams {
    /// The thread whose configuration names the MCP server; null uses the server-wide
    /// configuration.
    pub thread_id: Option<ThreadId>,
    /// Name of the MCP server in the configuration.
    pub name: String,
    /// OAuth client registration for this sign-in only. Null means `auto`.
    pub client_registration: Option<McpServerOauthClientRegistration>,
    /// OAuth scopes to request. Null uses the configured scopes, or those that the MCP server
    /// offers.
    pub scopes: Option<Vec<String>>,
    /// Timeout of the sign-in in seconds; null uses the server's default.
    pub timeout_secs: Option<i64>,
}

/// Result of `mcpServer/oauth/login`. The outcome follows in `mcpServer/oauthLogin/completed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginResponse {
    /// The page to open in the user's browser.
    pub authorization_url: String,
    /// Id of this sign-in attempt; the completion notification repeats it. Null from servers that
    /// do not assign ids.
    pub login_id: Option<String>,
}

/// Result of `config/mcpServer/reload`: empty. The method takes no params.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServerRefreshResponse {}

/// Params of `mcpServerStatus/list`, which lists the configured MCP servers and their capabilities
/// in pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpServerStatusParams {
    /// Thread whose configuration and connections to use; null uses the server-wide ones.
    pub thread_id: Option<ThreadId>,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Amount of detail to request from each MCP server. Null means `full`.
    pub detail: Option<McpServerStatusDetail>,
    /// Maximum number of entries on the page; null leaves it to the server.
    pub limit: Option<u32>,
    /// Lists only this MCP server. With `threadId`, the thread's open connection is used.
    pub server_name: Option<String>,
}

/// Result of `mcpServerStatus/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpServerStatusResponse {
    /// One entry per configured MCP server.
    pub data: Vec<McpServerStatus>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `mcpServer/resource/read`, which reads one resource of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadParams {
    /// The thread whose connection to use; null uses a connection outside any thread.
    pub thread_id: Option<ThreadId>,
    /// Name of the MCP server in the configuration.
    pub server: String,
    /// URI of the resource, as listed by the MCP server.
    pub uri: String,
    /// Id of the hosted app that provides the resource; null for an ordinary MCP server.
    pub connector_id: Option<String>,
    /// Tool call that led to this resource, so that the same app answers. Null when there is none.
    pub origin_call_id: Option<String>,
    /// Hosted app and account to use; null lets the server determine them.
    pub target: Option<McpResourceReadTarget>,
}

/// Result of `mcpServer/resource/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadResponse {
    /// MCP resource contents: each has `uri`, and either `text` or base64 `blob`.
    pub contents: Vec<Value>,
    /// Tool call whose app answered; null when the request did not name one.
    pub origin_call_id: Option<String>,
}

/// Params of `mcpServer/tool/call`, by which the client calls an MCP tool outside any turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerToolCallParams {
    /// The thread whose connection to the MCP server is used.
    pub thread_id: ThreadId,
    /// Name of the MCP server in the configuration.
    pub server: String,
    /// Name of the tool, as listed by the MCP server.
    pub tool: String,
    /// MCP metadata (`_meta`), passed on unchanged.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// Arguments of the tool, as its input schema defines them. Null calls it without arguments.
    pub arguments: Option<Value>,
}

/// Result of `mcpServer/tool/call`, as the MCP server returned it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerToolCallResponse {
    /// MCP content blocks: text, images, resources and the like.
    pub content: Vec<Value>,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// True when the tool itself reports failure; null counts as false.
    pub is_error: Option<bool>,
    /// The result as plain JSON, for tools that declare an output schema.
    pub structured_content: Option<Value>,
}

/// `mcpServer/startupStatus/updated`: the startup status of an MCP server changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatusUpdatedNotification {
    /// Thread for which the MCP server is starting; null when it belongs to none.
    pub thread_id: Option<ThreadId>,
    /// Name of the MCP server in the configuration.
    pub name: String,
    /// Current startup status.
    pub status: McpServerStartupState,
    /// Human-readable error message; set when `status` is `failed`.
    pub error: Option<String>,
    /// Cause of the failure, where a client can act on it; null otherwise.
    pub failure_reason: Option<McpServerStartupFailureReason>,
}

/// `mcpServer/oauthLogin/completed`: a sign-in started by `mcpServer/oauth/login` has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginCompletedNotification {
    /// Thread named when the sign-in started, if any.
    pub thread_id: Option<ThreadId>,
    /// Name of the MCP server.
    pub name: String,
    /// Whether usable credentials are now stored.
    pub success: bool,
    /// Error message; null on success.
    pub error: Option<String>,
    /// Id of the sign-in attempt, from `mcpServer/oauth/login`; null from servers that do not
    /// assign ids.
    pub login_id: Option<String>,
}

tagged! {
    /// Params of `mcpServer/elicitation/request`: an MCP server asks the user a question. Every
    /// subscriber of the thread receives the request and the first response counts.
    pub enum McpServerElicitationRequestParams by "mode" {
        /// Confirm with a verification on the user's device; accepting returns the proof in
        /// `content`.
        OpenaiUserVerification(OpenaiUserVerificationMcpServerElicitationRequestParams) = "openai/userVerification",
        /// Fill in a form, as the MCP standard describes it.
        Form(FormMcpServerElicitationRequestParams) = "form",
        /// Fill in an extended form, for clients that declared the `openai/form` extension.
        OpenaiForm(OpenaiFormMcpServerElicitationRequestParams) = "openai/form",
        /// The same as `openai/form` under its older name.
        OpenaiFormLegacy(OpenaiFormLegacyMcpServerElicitationRequestParams) = "openaiForm",
        /// Visit a page and return, as the MCP standard describes it.
        Url(UrlMcpServerElicitationRequestParams) = "url",
    }
}

/// An elicitation that requires verification on the user's device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenaiUserVerificationMcpServerElicitationRequestParams {
    /// Thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// Turn that was running when the question arrived; null if none could be determined.
    pub turn_id: Option<TurnId>,
    /// Challenge that the device signs, opaque to the client.
    pub challenge: String,
    /// Full description of the action to approve.
    pub description: String,
    /// Short description of the action to approve.
    pub title: String,
    /// Configured name of the MCP server that asks.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An elicitation answered by filling in a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormMcpServerElicitationRequestParams {
    /// Thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// Turn that was running when the question arrived; null if none could be determined.
    pub turn_id: Option<TurnId>,
    /// Question, to display above the form.
    pub message: String,
    /// A flat JSON Schema object: one primitive property per form field.
    pub requested_schema: Value,
    /// Configured name of the MCP server that asks.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An elicitation answered by a form of the `openai/form` extension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenaiFormMcpServerElicitationRequestParams {
    /// Thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// Turn that was running when the question arrived; null if none could be determined.
    pub turn_id: Option<TurnId>,
    /// Question, to display above the form.
    pub message: String,
    /// Form, as the extension defines it; passed on unchanged.
    pub requested_schema: Value,
    /// Configured name of the MCP server that asks.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An extended form under the older mode name `openaiForm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenaiFormLegacyMcpServerElicitationRequestParams {
    /// Thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// Turn that was running when the question arrived; null if none could be determined.
    pub turn_id: Option<TurnId>,
    /// Question, to display above the form.
    pub message: String,
    /// Form, as the extension defines it; passed on unchanged.
    pub requested_schema: Value,
    /// Configured name of the MCP server that asks.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An elicitation answered by visiting a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UrlMcpServerElicitationRequestParams {
    /// Thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// Turn that was running when the question arrived; null if none could be determined.
    pub turn_id: Option<TurnId>,
    /// Id that the MCP server assigned to this question.
    pub elicitation_id: String,
    /// Reason to visit the page.
    pub message: String,
    /// URL of the page. Clients must show it to the user before they open it.
    pub url: String,
    /// Configured name of the MCP server that asks.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// Response of the client to `mcpServer/elicitation/request`. An error or an unreadable response
/// counts as `decline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerElicitationRequestResponse {
    /// Decision of the user.
    pub action: McpServerElicitationAction,
    /// MCP metadata (`_meta`) to send to the MCP server with the response.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// Completed form or proof; null unless `action` is `accept`.
    pub content: Option<Value>,
}

open_enum! {
    /// How the server registers as a client of an MCP server's OAuth provider.
    pub enum McpServerOauthClientRegistration {
        /// Any method that the provider supports; the default.
        Auto = "auto",
        /// A client id metadata document: a published URL that serves as client id.
        Cimd = "cimd",
        /// Dynamic client registration.
        Dcr = "dcr",
    }
}

open_enum! {
    /// Amount of detail that `mcpServerStatus/list` requests from each MCP server.
    pub enum McpServerStatusDetail {
        /// Tools, sign-in state, resources and resource templates; the default.
        Full = "full",
        /// Tools and sign-in state; the resource lists stay empty.
        ToolsAndAuthOnly = "toolsAndAuthOnly",
    }
}

/// One configured MCP server, as `mcpServerStatus/list` reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatus {
    /// Sign-in status at the MCP server.
    pub auth_status: McpAuthStatus,
    /// Name of the MCP server in the configuration.
    pub name: String,
    /// MCP resource templates, passed on unchanged.
    pub resource_templates: Vec<Value>,
    /// MCP resources, passed on unchanged.
    pub resources: Vec<Value>,
    /// MCP tool definitions by tool name, passed on unchanged.
    pub tools: BTreeMap<String, Value>,
    /// Scheme, host and port of the endpoint. Null when the MCP server is not reached over HTTP.
    pub http_origin: Option<String>,
    /// Plugin that provides the MCP server; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// Status of the thread's connection; null when there is none or its settings have since
    /// changed.
    pub runtime_status: Option<McpServerConnectionStatus>,
    /// MCP capabilities that the MCP server declared; null before it has responded.
    pub server_capabilities: Option<Value>,
    /// Name, version and other display data of the MCP server; null before it has responded.
    pub server_info: Option<Value>,
    /// MCP metadata (`_meta`) of the first page of tools, if any.
    pub tool_list_meta: Option<Value>,
    /// Reason why the tools could not be listed; null whenever `tools` is valid, even if empty or
    /// cached.
    pub tools_error: Option<String>,
}

/// A hosted app, and the account to use with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadTarget {
    /// Id of the hosted app.
    pub connector_id: String,
    /// Id of the linked account; null reads without one, where the app allows it.
    pub link_id: Option<String>,
}

open_enum! {
    /// Startup status of an MCP server.
    pub enum McpServerStartupState {
        /// The MCP server is being launched or connected to.
        Starting = "starting",
        /// The MCP server has responded and its tools can be used.
        Ready = "ready",
        /// The MCP server could not be started; see `error`.
        Failed = "failed",
        /// The startup was cancelled.
        Cancelled = "cancelled",
    }
}

open_enum! {
    /// Causes of a failed startup on which a client can act.
    pub enum McpServerStartupFailureReason {
        /// The stored sign-in is no longer valid; `mcpServer/oauth/login` renews it.
        ReauthenticationRequired = "reauthenticationRequired",
    }
}

open_enum! {
    /// Decision of the user about an elicitation.
    pub enum McpServerElicitationAction {
        /// The user agreed; `content` holds the input.
        Accept = "accept",
        /// The user declined.
        Decline = "decline",
        /// The user closed the question without a decision.
        Cancel = "cancel",
    }
}

open_enum! {
    /// Sign-in status at an MCP server.
    pub enum McpAuthStatus {
        /// The status is unknown.
        Unknown = "unknown",
        /// The MCP server offers no sign-in.
        Unsupported = "unsupported",
        /// The MCP server offers sign-in, but the user is not signed in.
        NotLoggedIn = "notLoggedIn",
        /// Signed in with a token from the configuration.
        BearerToken = "bearerToken",
        /// Signed in with OAuth credentials from an earlier sign-in.
        OAuth = "oAuth",
    }
}

open_enum! {
    /// Status of a thread's connection to an MCP server.
    pub enum McpServerConnectionStatus {
        /// The connection has not been attempted yet.
        NotStarted = "notStarted",
        /// The MCP server is being launched or connected to.
        Starting = "starting",
        /// The connection is open.
        Connected = "connected",
        /// The connection waits for the user to sign in.
        AuthenticationRequired = "authenticationRequired",
        /// The connection failed.
        Failed = "failed",
        /// The connection was cancelled before it was ready.
        Cancelled = "cancelled",
        /// The MCP server is disabled in the configuration.
        Disabled = "disabled",
    }
}

/// The hosted app behind a tool, and its use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallAppContext {
    /// Id of the hosted app.
    pub connector_id: String,
    /// Human-readable name of the action; null if unknown.
    pub action_name: Option<String>,
    /// Human-readable name of the app; null if unknown.
    pub app_name: Option<String>,
    /// Id of the linked account; null if none is used.
    pub link_id: Option<String>,
    /// URI of the resource that displays the result; null if there is none.
    pub resource_uri: Option<String>,
}

/// The resource that displays a tool's result, and its display mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpAppUi {
    /// Display mode when the model calls the tool.
    pub preferred_model_display_mode: McpAppDisplayMode,
    /// URI of the resource.
    pub resource_uri: String,
}

open_enum! {
    /// Display mode of a tool's interface.
    pub enum McpAppDisplayMode {
        /// Among the items of the turn.
        Inline = "inline",
        /// In full screen.
        Fullscreen = "fullscreen",
    }
}
