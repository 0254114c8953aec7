//! What an agent may do and whom it must ask: approval policies, sandbox policies,
//! permission profiles, and permissions asked for and granted while a turn runs.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `permissionProfile/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileListParams {
    /// Where to go on, from `nextCursor` of the page before; null starts at the beginning.
    pub cursor: Option<String>,
    /// A folder whose project configuration is to count too; null counts none.
    pub cwd: Option<String>,
    /// The most entries to return; null returns all.
    pub limit: Option<u32>,
}

/// Result of `permissionProfile/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileListResponse {
    /// One page of profiles.
    pub data: Vec<PermissionProfileSummary>,
    /// The cursor of the next page; null after the last.
    pub next_cursor: Option<String>,
}

keyed! {
    /// When the agent must ask before it acts.
    pub enum AskForApproval {
        /// Before every command that is not known to be harmless.
        Untrusted = "untrusted",
        /// When the agent itself asks to go beyond the sandbox.
        OnRequest = "on-request",
        /// Not at all: what the sandbox forbids fails, and the model is told.
        Never = "never",
        /// As chosen for each kind of question. Only with the experimental API.
        Granular(GranularAskForApproval) = "granular",
    }
}

open_enum! {
    /// Who answers approval requests. Defaults to `user`.
    pub enum ApprovalsReviewer {
        /// The user, by way of the client.
        User = "user",
        /// A reviewing agent, which weighs the risk and decides without the user.
        AutoReview = "auto_review",
        /// An older name of `auto_review`, still accepted.
        GuardianSubagent = "guardian_subagent",
    }
}

open_enum! {
    /// How far tools are fenced in, in one word. `SandboxPolicy` says the same with details.
    pub enum SandboxMode {
        /// Read files, write none.
        ReadOnly = "read-only",
        /// Read files, and write inside the workspace.
        WorkspaceWrite = "workspace-write",
        /// No sandbox at all.
        DangerFullAccess = "danger-full-access",
    }
}

tagged! {
    /// How far tools are fenced in.
    pub enum SandboxPolicy by "type" {
        /// No sandbox at all.
        DangerFullAccess = "dangerFullAccess",
        /// Read files, write none.
        ReadOnly(ReadOnlySandboxPolicy) = "readOnly",
        /// The server adds no fence, because it already runs inside one.
        ExternalSandbox(ExternalSandboxSandboxPolicy) = "externalSandbox",
        /// Read files, and write inside the workspace.
        WorkspaceWrite(WorkspaceWriteSandboxPolicy) = "workspaceWrite",
    }
}

/// The details of a sandbox that lets tools read only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadOnlySandboxPolicy {
    /// Whether tools may use the network. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub network_access: bool,
}

/// The details of a sandbox that someone else provides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSandboxSandboxPolicy {
    /// Whether that sandbox lets tools use the network. Defaults to `restricted`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub network_access: NetworkAccess,
}

/// The details of a sandbox that lets tools write inside the workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceWriteSandboxPolicy {
    /// True to leave `/tmp` unwritable. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_slash_tmp: bool,
    /// True to leave the folder named by `TMPDIR` unwritable. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_tmpdir_env_var: bool,
    /// Whether tools may use the network. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub network_access: bool,
    /// Absolute paths that may be written besides the working folder. Defaults to none.
    #[serde(default, deserialize_with = "null_as_default")]
    pub writable_roots: Vec<String>,
}

/// The permission profile a thread runs under.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivePermissionProfile {
    /// The profile's id; those built in begin with a colon, such as `:workspace`.
    pub id: String,
    /// The id of the profile it builds on; null if it stands alone.
    pub extends: Option<String>,
}

/// A permission profile, as `permissionProfile/list` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileSummary {
    /// The profile's id, as `permissions` of `thread/start` or `turn/start` takes it.
    pub id: String,
    /// False when an administrator's requirements forbid choosing it.
    pub allowed: bool,
    /// A line about it for the user.
    pub description: Option<String>,
}

/// What one command asks for beyond the sandbox, shown with its approval request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalPermissionProfile {
    /// Paths it wants to reach; null asks for none.
    pub file_system: Option<AdditionalFileSystemPermissions>,
    /// Network it wants; null asks for none.
    pub network: Option<AdditionalNetworkPermissions>,
}

/// The connection a command wants to make, shown with its approval request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkApprovalContext {
    /// The host to reach.
    pub host: String,
    /// How it would be reached.
    pub protocol: NetworkApprovalProtocol,
}

/// A rule about one host that the server proposes and the client may take up with its decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyAmendment {
    /// Whether connections to the host are let through.
    pub action: NetworkPolicyRuleAction,
    /// The host the rule is about.
    pub host: String,
}

/// The permissions asked for by `item/permissions/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestPermissionProfile {
    /// Paths the agent wants to reach; null asks for none.
    pub file_system: Option<AdditionalFileSystemPermissions>,
    /// Network the agent wants; null asks for none.
    pub network: Option<AdditionalNetworkPermissions>,
}

/// The permissions granted in answer to `item/permissions/requestApproval`: all that was asked, or less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantedPermissionProfile {
    /// Paths granted; null grants none.
    pub file_system: Option<AdditionalFileSystemPermissions>,
    /// Network granted; null grants none.
    pub network: Option<AdditionalNetworkPermissions>,
}

open_enum! {
    /// How long granted permissions last. Defaults to `turn`.
    pub enum PermissionGrantScope or Turn {
        /// Until the turn ends.
        Turn = "turn",
        /// For the rest of the thread's session.
        Session = "session",
    }
}

open_enum! {
    /// Whether a sandbox provided by someone else lets tools use the network. Defaults to `restricted`.
    pub enum NetworkAccess or Restricted {
        /// It holds the network back.
        Restricted = "restricted",
        /// It lets tools use the network.
        Enabled = "enabled",
    }
}

/// Access to paths beyond the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalFileSystemPermissions {
    /// The paths, each with its access; null for none.
    pub entries: Option<Vec<FileSystemSandboxEntry>>,
    /// How many folders deep glob patterns are followed, at least 1; null leaves it to the server.
    pub glob_scan_max_depth: Option<NonZeroU64>,
    /// Paths to read; an older form of `entries`.
    pub read: Option<Vec<String>>,
    /// Paths to write; an older form of `entries`.
    pub write: Option<Vec<String>>,
}

/// Access to the network beyond the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalNetworkPermissions {
    /// Whether the network may be used; null leaves it as it is.
    pub enabled: Option<bool>,
}

open_enum! {
    /// How a host is reached.
    pub enum NetworkApprovalProtocol {
        /// Plain HTTP.
        Http = "http",
        /// HTTP over TLS.
        Https = "https",
        /// TCP through a SOCKS5 proxy.
        Socks5Tcp = "socks5Tcp",
        /// UDP through a SOCKS5 proxy.
        Socks5Udp = "socks5Udp",
    }
}

open_enum! {
    /// What a rule does with connections to its host.
    pub enum NetworkPolicyRuleAction {
        /// Lets them through.
        Allow = "allow",
        /// Refuses them.
        Deny = "deny",
    }
}

/// One path and what may be done there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSystemSandboxEntry {
    /// What may be done.
    pub access: FileSystemAccessMode,
    /// Where.
    pub path: FileSystemPath,
}

open_enum! {
    /// What may be done at a path.
    pub enum FileSystemAccessMode {
        /// Read.
        Read = "read",
        /// Read and write.
        Write = "write",
        /// Nothing.
        Deny = "deny",
    }
}

tagged! {
    /// A place in the file system: a path, a pattern, or a name for a well-known place.
    pub enum FileSystemPath by "type" {
        /// One path, with all below it.
        Path(PathFileSystemPath) = "path",
        /// Every path that fits a pattern.
        GlobPattern(GlobPatternFileSystemPath) = "glob_pattern",
        /// A well-known place.
        Special(SpecialFileSystemPath) = "special",
    }
}

/// A place given by its path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathFileSystemPath {
    /// The path.
    pub path: String,
}

/// Places given by a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlobPatternFileSystemPath {
    /// The glob pattern.
    pub pattern: String,
}

/// A place given by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecialFileSystemPath {
    /// Which place.
    pub value: FileSystemSpecialPath,
}

tagged! {
    /// A well-known place, found anew on each machine.
    pub enum FileSystemSpecialPath by "kind" {
        /// The whole file system.
        Root = "root",
        /// The few system paths that programs need to run at all.
        Minimal = "minimal",
        /// The workspace folders of the thread.
        ProjectRoots(ProjectRootsFileSystemSpecialPath) = "project_roots",
        /// The folder named by `TMPDIR`.
        Tmpdir = "tmpdir",
        /// The folder `/tmp`.
        SlashTmp = "slash_tmp",
        /// A place the writer could name but not place, kept so that it is not lost.
        Unknown(UnknownFileSystemSpecialPath) = "unknown",
    }
}

/// The workspace folders, or a part of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRootsFileSystemSpecialPath {
    /// A path inside each folder; null means the folder itself.
    pub subpath: Option<String>,
}

/// A place whose name is not known here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownFileSystemSpecialPath {
    /// The name as it was written.
    pub path: String,
    /// A path inside that place; null means the place itself.
    pub subpath: Option<String>,
}

/// An approval policy that says for each kind of question whether it may be asked.
/// What may not be asked is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GranularAskForApproval {
    /// Whether MCP servers may ask the user for input.
    #[serde(rename = "mcp_elicitations")]
    pub mcp_elicitations: bool,
    /// Whether a rule may demand an approval.
    pub rules: bool,
    /// Whether the agent may ask to run something outside the sandbox.
    #[serde(rename = "sandbox_approval")]
    pub sandbox_approval: bool,
    /// Whether the agent may ask for more permissions. False by default.
    #[serde(rename = "request_permissions")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub request_permissions: bool,
    /// Whether the agent may ask to run a script of a skill. False by default.
    #[serde(rename = "skill_approval")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub skill_approval: bool,
}
