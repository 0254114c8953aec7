//! MCP servers: their state, sign-in, resources and tools, and the questions they put to the user.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `mcpServer/oauth/login`: begin an OAuth sign-in to one MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginParams {
    /// The thread whose configuration names the server; null looks at the server-wide configuration.
    pub thread_id: Option<ThreadId>,
    /// The MCP server's name in the configuration.
    pub name: String,
    /// How to register as an OAuth client, this time only. Null means `auto`.
    pub client_registration: Option<McpServerOauthClientRegistration>,
    /// OAuth scopes to ask for. Null takes the configured ones, or those the MCP server offers.
    pub scopes: Option<Vec<String>>,
    /// How many seconds the user has to finish; null takes the server's default.
    pub timeout_secs: Option<i64>,
}

/// Result of `mcpServer/oauth/login`. The outcome follows in `mcpServer/oauthLogin/completed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginResponse {
    /// The page to open in the user's browser.
    pub authorization_url: String,
    /// Names this attempt; the completion notification repeats it.
    /// Null from servers that do not number attempts.
    pub login_id: Option<String>,
}

/// Result of `config/mcpServer/reload`: empty. The method takes no params.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServerRefreshResponse {}

/// Params of `mcpServerStatus/list`: configured MCP servers and what they offer, in pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpServerStatusParams {
    /// Look through this thread's configuration and connections; null looks at the server-wide ones.
    pub thread_id: Option<ThreadId>,
    /// Where to go on, as `nextCursor` gave it; null starts at the beginning.
    pub cursor: Option<String>,
    /// How much to ask of each MCP server. Null means `full`.
    pub detail: Option<McpServerStatusDetail>,
    /// The most entries in one page; null leaves it to the server.
    pub limit: Option<u32>,
    /// Ask about this MCP server only. Together with `threadId` the thread's open connection is used.
    pub server_name: Option<String>,
}

/// Result of `mcpServerStatus/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMcpServerStatusResponse {
    /// One entry per configured MCP server.
    pub data: Vec<McpServerStatus>,
    /// Pass it as `cursor` for the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Params of `mcpServer/resource/read`: fetch one resource from an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadParams {
    /// The thread whose connection is used; null uses one outside any thread.
    pub thread_id: Option<ThreadId>,
    /// The MCP server's name in the configuration.
    pub server: String,
    /// The resource's URI, as the MCP server lists it.
    pub uri: String,
    /// The hosted app the resource belongs to; null for an ordinary MCP server.
    pub connector_id: Option<String>,
    /// The tool call that led to this resource, so that the same app answers. Null when there is none.
    pub origin_call_id: Option<String>,
    /// Names the hosted app and account outright; null lets the server find them.
    pub target: Option<McpResourceReadTarget>,
}

/// Result of `mcpServer/resource/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadResponse {
    /// MCP resource contents: each has `uri`, and either `text` or base64 `blob`.
    pub contents: Vec<Value>,
    /// The tool call whose app was asked; null when the request was not narrowed to one.
    pub origin_call_id: Option<String>,
}

/// Params of `mcpServer/tool/call`: the client calls an MCP tool itself, outside any turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerToolCallParams {
    /// The thread whose connection to the MCP server is used.
    pub thread_id: ThreadId,
    /// The MCP server's name in the configuration.
    pub server: String,
    /// The tool's name, as the MCP server lists it.
    pub tool: String,
    /// MCP metadata (`_meta`), passed on unread.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// The tool's arguments, shaped by its input schema. Null calls it without any.
    pub arguments: Option<Value>,
}

/// Result of `mcpServer/tool/call`, as the MCP server gave it.
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

/// `mcpServer/startupStatus/updated`: an MCP server moved on while starting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatusUpdatedNotification {
    /// The thread it is starting for; null when it belongs to none.
    pub thread_id: Option<ThreadId>,
    /// The MCP server's name in the configuration.
    pub name: String,
    /// How far it has come.
    pub status: McpServerStartupState,
    /// What went wrong, for people to read; set when `status` is `failed`.
    pub error: Option<String>,
    /// The cause, where a client can act on it; null for all others.
    pub failure_reason: Option<McpServerStartupFailureReason>,
}

/// `mcpServer/oauthLogin/completed`: a sign-in begun by `mcpServer/oauth/login` has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerOauthLoginCompletedNotification {
    /// The thread named when the sign-in began, if any.
    pub thread_id: Option<ThreadId>,
    /// The MCP server that was signed in to.
    pub name: String,
    /// Whether usable credentials are now stored.
    pub success: bool,
    /// Why it failed; null on success.
    pub error: Option<String>,
    /// The attempt, as `mcpServer/oauth/login` named it; null from servers that do not number attempts.
    pub login_id: Option<String>,
}

tagged! {
    /// Params of `mcpServer/elicitation/request`: an MCP server asks the user something.
    /// Every subscriber of the thread is asked and the first answer counts.
    pub enum McpServerElicitationRequestParams by "mode" {
        /// Confirm with a check on the user's device; accepting returns the proof in `content`.
        OpenaiUserVerification(OpenaiUserVerificationMcpServerElicitationRequestParams) = "openai/userVerification",
        /// Fill in a form, as the MCP standard describes it.
        Form(FormMcpServerElicitationRequestParams) = "form",
        /// Fill in a form of a richer kind, for clients that declared the `openai/form` extension.
        OpenaiForm(OpenaiFormMcpServerElicitationRequestParams) = "openai/form",
        /// The same as `openai/form` under its older name.
        OpenaiFormLegacy(OpenaiFormLegacyMcpServerElicitationRequestParams) = "openaiForm",
        /// Visit a page and come back, as the MCP standard describes it.
        Url(UrlMcpServerElicitationRequestParams) = "url",
    }
}

/// An elicitation that wants the user verified on their device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenaiUserVerificationMcpServerElicitationRequestParams {
    /// The thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// The turn that was running when the question came; null if none could be matched.
    pub turn_id: Option<TurnId>,
    /// What the device signs, opaque to the client.
    pub challenge: String,
    /// What is being approved, in full.
    pub description: String,
    /// What is being approved, in a few words.
    pub title: String,
    /// The MCP server that asks, by its configured name.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An elicitation answered by filling in a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormMcpServerElicitationRequestParams {
    /// The thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// The turn that was running when the question came; null if none could be matched.
    pub turn_id: Option<TurnId>,
    /// The question, to show above the form.
    pub message: String,
    /// A flat JSON Schema object: one primitive property per form field.
    pub requested_schema: Value,
    /// The MCP server that asks, by its configured name.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An elicitation answered by a form of the `openai/form` extension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenaiFormMcpServerElicitationRequestParams {
    /// The thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// The turn that was running when the question came; null if none could be matched.
    pub turn_id: Option<TurnId>,
    /// The question, to show above the form.
    pub message: String,
    /// The form, in the extension's own shape; passed on unread.
    pub requested_schema: Value,
    /// The MCP server that asks, by its configured name.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An extended form under the older mode name `openaiForm`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenaiFormLegacyMcpServerElicitationRequestParams {
    /// The thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// The turn that was running when the question came; null if none could be matched.
    pub turn_id: Option<TurnId>,
    /// The question, to show above the form.
    pub message: String,
    /// The form, in the extension's own shape; passed on unread.
    pub requested_schema: Value,
    /// The MCP server that asks, by its configured name.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// An elicitation answered by visiting a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UrlMcpServerElicitationRequestParams {
    /// The thread whose MCP server asks.
    pub thread_id: ThreadId,
    /// The turn that was running when the question came; null if none could be matched.
    pub turn_id: Option<TurnId>,
    /// The MCP server's own name for this question.
    pub elicitation_id: String,
    /// Why the page should be visited.
    pub message: String,
    /// The page to open. Show it to the user before opening it.
    pub url: String,
    /// The MCP server that asks, by its configured name.
    pub server_name: String,
    /// MCP metadata (`_meta`) from the MCP server.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
}

/// The client's answer to `mcpServer/elicitation/request`.
/// An error or an unreadable answer counts as `decline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerElicitationRequestResponse {
    /// What the user decided.
    pub action: McpServerElicitationAction,
    /// MCP metadata (`_meta`) to hand to the MCP server with the answer.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// The filled-in form or the proof; null unless `action` is `accept`.
    pub content: Option<Value>,
}

open_enum! {
    /// How the server becomes known to an MCP server's OAuth provider.
    pub enum McpServerOauthClientRegistration {
        /// Whichever the provider supports; the default.
        Auto = "auto",
        /// By a client id metadata document, a published URL that serves as client id.
        Cimd = "cimd",
        /// By dynamic client registration.
        Dcr = "dcr",
    }
}

open_enum! {
    /// How much `mcpServerStatus/list` asks of each MCP server.
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
    /// Whether and how the server is signed in to it.
    pub auth_status: McpAuthStatus,
    /// Its name in the configuration.
    pub name: String,
    /// Its MCP resource templates, unread.
    pub resource_templates: Vec<Value>,
    /// Its MCP resources, unread.
    pub resources: Vec<Value>,
    /// Its MCP tool definitions by tool name, unread.
    pub tools: BTreeMap<String, Value>,
    /// Scheme, host and port of its endpoint, nothing more. Null when it is not reached over HTTP.
    pub http_origin: Option<String>,
    /// The plugin that brought it; null when it was configured directly.
    pub plugin_id: Option<String>,
    /// The thread's connection to it; null when there is none to report or its settings have since changed.
    pub runtime_status: Option<McpServerConnectionStatus>,
    /// The MCP capabilities it declared; null before it has answered.
    pub server_capabilities: Option<Value>,
    /// Its own name, version and other facts for display; null before it has answered.
    pub server_info: Option<Value>,
    /// MCP metadata (`_meta`) that came with the first page of its tools, if any.
    pub tool_list_meta: Option<Value>,
    /// Why its tools could not be listed; null whenever `tools` is an answer, even if empty or cached.
    pub tools_error: Option<String>,
}

/// A hosted app, and the account to use with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpResourceReadTarget {
    /// The hosted app.
    pub connector_id: String,
    /// The linked account; null reads without one, where the app allows it.
    pub link_id: Option<String>,
}

open_enum! {
    /// How far an MCP server has come in starting.
    pub enum McpServerStartupState {
        /// It is being launched or connected to.
        Starting = "starting",
        /// It has answered and its tools can be used.
        Ready = "ready",
        /// It could not be started; `error` says why.
        Failed = "failed",
        /// Starting was given up before it ended.
        Cancelled = "cancelled",
    }
}

open_enum! {
    /// Causes of a failed start that a client can help with.
    pub enum McpServerStartupFailureReason {
        /// The stored sign-in is no longer good; `mcpServer/oauth/login` mends it.
        ReauthenticationRequired = "reauthenticationRequired",
    }
}

open_enum! {
    /// What the user did with an elicitation.
    pub enum McpServerElicitationAction {
        /// Agreed; `content` holds what was given.
        Accept = "accept",
        /// Said no.
        Decline = "decline",
        /// Closed it without deciding.
        Cancel = "cancel",
    }
}

open_enum! {
    /// How the server is signed in to an MCP server.
    pub enum McpAuthStatus {
        /// Not found out.
        Unknown = "unknown",
        /// The MCP server offers no sign-in.
        Unsupported = "unsupported",
        /// Sign-in is offered and has not been done.
        NotLoggedIn = "notLoggedIn",
        /// By a token from the configuration.
        BearerToken = "bearerToken",
        /// By OAuth credentials from an earlier sign-in.
        OAuth = "oAuth",
    }
}

open_enum! {
    /// The state of a thread's connection to an MCP server.
    pub enum McpServerConnectionStatus {
        /// Not tried yet.
        NotStarted = "notStarted",
        /// Being launched or connected to.
        Starting = "starting",
        /// In use.
        Connected = "connected",
        /// Waiting for the user to sign in.
        AuthenticationRequired = "authenticationRequired",
        /// Tried without success.
        Failed = "failed",
        /// Given up before it was ready.
        Cancelled = "cancelled",
        /// Switched off in the configuration.
        Disabled = "disabled",
    }
}

/// The hosted app behind a tool, and what it was used for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallAppContext {
    /// The hosted app.
    pub connector_id: String,
    /// What the tool does there, for people to read; null if not known.
    pub action_name: Option<String>,
    /// The app's name, for people to read; null if not known.
    pub app_name: Option<String>,
    /// The linked account; null if none is used.
    pub link_id: Option<String>,
    /// The resource that shows the result; null if there is none.
    pub resource_uri: Option<String>,
}

/// The resource that shows a tool's result, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpAppUi {
    /// How to show it when the model calls the tool.
    pub preferred_model_display_mode: McpAppDisplayMode,
    /// The resource's URI.
    pub resource_uri: String,
}

open_enum! {
    /// How the interface of a tool is shown.
    pub enum McpAppDisplayMode {
        /// Among the turn's items.
        Inline = "inline",
        /// By itself.
        Fullscreen = "fullscreen",
    }
}
