//! The first request on every connection: who the client is, what it wants, and where it has arrived.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `initialize`. Every other method is refused before it, and a second one is refused too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Who the client is.
    pub client_info: ClientInfo,
    /// What the client can do and wants; null means all defaults. Fixed while the connection lasts.
    pub capabilities: Option<InitializeCapabilities>,
}

/// Result of `initialize`. With it the connection is ready; `initialized` need not be awaited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// The server's home directory, as an absolute path.
    pub codex_home: String,
    /// The kind of system the server runs on: `unix` or `windows`.
    pub platform_family: String,
    /// The system the server runs on, such as `linux` or `macos`.
    pub platform_os: String,
    /// The server's name and version, its platform and the client, as one line.
    /// It begins `name/version `; clients read the version there.
    pub user_agent: String,
    /// What only this server says of itself. Clients of the plain contract do not look here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raddle: Option<RaddleInfo>,
}

/// Raddle's own introduction, beside the contract's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RaddleInfo {
    /// Raddle's true version; the one in `userAgent` is the contract's.
    pub version: String,
    /// The version of the contract this server was checked against.
    pub contract_version: String,
    /// The extensions a client may opt into by `capabilities.extensions`.
    pub extensions: Vec<String>,
    /// How strongly commands are fenced in on this machine.
    pub sandbox: SandboxInfo,
}

/// What was found out about the fence around commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxInfo {
    /// `pending` while it is measured, for which commands wait; then what holds it: `namespaces+landlock`,
    /// `landlock`, or `none`, where nothing is run in a sandbox.
    pub kind: String,
    /// What does not hold, each in a few words.
    pub not_held: Vec<String>,
}

/// Who the client is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Its name for machines; must be legal as the value of an HTTP header.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name for people to read; null if it has none.
    pub title: Option<String>,
}

/// What a client can do and wants on this connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeCapabilities {
    /// Allow experimental methods and params, and receive experimental notifications. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_api: bool,
    /// Sign in to a vendor's gateway only on request, not by opening a browser unasked.
    /// Absent means false. Once set it holds for the whole server.
    #[serde(default, deserialize_with = "null_as_default")]
    pub explicit_gateway_oauth: bool,
    /// MCP extensions the client supports, by name, with their settings; MCP servers are told of them.
    /// Names that begin with `raddle/` are this server's own, and are told to nobody else.
    pub extensions: Option<BTreeMap<String, Value>>,
    /// Same as naming `openai/form` in `extensions`, for older clients. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub mcp_server_openai_form_elicitation: bool,
    /// Methods of notifications not to send here, spelled exactly; unknown ones are ignored.
    /// Responses and server requests come all the same. Null means none.
    pub opt_out_notification_methods: Option<Vec<String>>,
    /// Agree to answer `attestation/generate`, a vendor's request. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub request_attestation: bool,
}
