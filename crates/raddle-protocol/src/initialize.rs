//! The first request on every connection: the identity and capabilities of the client, and the
//! identity of the server.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `initialize`. The server rejects every other method before it, and rejects a second
/// `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Identity of the client.
    pub client_info: ClientInfo,
    /// Capabilities of the client; null means all defaults. Fixed for the lifetime of the
    /// connection.
    pub capabilities: Option<InitializeCapabilities>,
}

/// Result of `initialize`. The connection is ready after it; the server does not wait for
/// `initialized`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// Absolute path of the server's home directory.
    pub codex_home: String,
    /// Family of the server's operating system: `unix` or `windows`.
    pub platform_family: String,
    /// Operating system of the server, such as `linux` or `macos`.
    pub platform_os: String,
    /// Name and version of the server, its platform and the client, in one line. It begins with
    /// `name/version `, from which clients read the version.
    pub user_agent: String,
    /// Information specific to Raddle. Clients of the plain contract ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raddle: Option<RaddleInfo>,
}

/// Information specific to Raddle, in addition to the contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RaddleInfo {
    /// Version of Raddle; the version in `userAgent` is the contract's.
    pub version: String,
    /// Version of the contract that this server was checked against.
    pub contract_version: String,
    /// Extensions that a client may enable in `capabilities.extensions`.
    pub extensions: Vec<String>,
    /// Strength of the command sandbox on this machine.
    pub sandbox: SandboxInfo,
    /// Durability of events if the server stores threads in a database: `synchronous` if each commit waits
    /// for a second copy, `relaxed` if events may be lost with the database's primary, or `pending` while
    /// the database has not answered. Absent if the threads are stored on the server's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<String>,
}

/// Capabilities of the command sandbox, as measured on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxInfo {
    /// `pending` while the server probes the sandbox, for which commands wait; then the mechanism:
    /// `namespaces+landlock`, `landlock`, or `none`, where no command runs in a sandbox.
    pub kind: String,
    /// Restrictions that the sandbox cannot enforce, each in a few words.
    pub not_held: Vec<String>,
}

/// Identity of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Machine-readable name; must be legal as the value of an HTTP header.
    pub name: String,
    /// Version of the client.
    pub version: String,
    /// Human-readable name; null if there is none.
    pub title: Option<String>,
}

/// Capabilities and preferences of a client on this connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeCapabilities {
    /// Allows experimental methods and params, and enables experimental notifications. Absent means
    /// false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub experimental_api: bool,
    /// Signs in to a vendor's gateway only on request, instead of opening a browser automatically.
    /// Absent means false. Once set, it applies to the whole server.
    #[serde(default, deserialize_with = "null_as_default")]
    pub explicit_gateway_oauth: bool,
    /// MCP extensions that the client supports, by name, with their settings; the server passes
    /// them on to MCP servers. Names that begin with `raddle/` are extensions of this server, which
    /// are not passed on.
    pub extensions: Option<BTreeMap<String, Value>>,
    /// Same as naming `openai/form` in `extensions`, for older clients. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub mcp_server_openai_form_elicitation: bool,
    /// Methods of notifications that the server must not send on this connection, spelled exactly;
    /// unknown names are ignored. Responses and server requests are not affected. Null means none.
    pub opt_out_notification_methods: Option<Vec<String>>,
    /// Declares that the client can answer `attestation/generate`, a vendor's request. Absent means
    /// false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub request_attestation: bool,
}
