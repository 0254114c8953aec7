//! Permissions of an agent: approval policies, sandbox policies, permission profiles, and
//! permissions requested and granted while a turn runs.

use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `permissionProfile/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileListParams {
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Directory whose project configuration applies too; null means none.
    pub cwd: Option<String>,
    /// Maximum number of entries on the page; null returns all.
    pub limit: Option<u32>,
}

/// Result of `permissionProfile/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileListResponse {
    /// One page of profiles.
    pub data: Vec<PermissionProfileSummary>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

externally_tagged! {
    /// Approval policy: when the agent must ask before it acts.
    pub enum AskForApproval {
        /// Before every command that is not known to be harmless.
        Untrusted = "untrusted",
        /// When the agent itself requests to leave the sandbox.
        OnRequest = "on-request",
        /// Never: actions that the sandbox forbids fail, and the model receives the error.
        Never = "never",
        /// By separate settings for each kind of request. Only with the experimental API.
        Granular(GranularAskForApproval) = "granular",
    }
}

open_enum! {
    /// Reviewer that answers approval requests. Defaults to `user`.
    pub enum ApprovalsReviewer {
        /// The user, through the client.
        User = "user",
        /// A reviewing agent, which assesses the risk and decides without the user.
        AutoReview = "auto_review",
        /// Older name of `auto_review`, still accepted.
        GuardianSubagent = "guardian_subagent",
    }
}

open_enum! {
    /// Sandbox mode of tools. `SandboxPolicy` expresses the same with details.
    pub enum SandboxMode {
        /// Tools may read files, but not write them.
        ReadOnly = "read-only",
        /// Tools may read files, and write inside the workspace.
        WorkspaceWrite = "workspace-write",
        /// No sandbox at all.
        DangerFullAccess = "danger-full-access",
    }
}

tagged! {
    /// Sandbox policy of tools.
    pub enum SandboxPolicy by "type" {
        /// No sandbox at all.
        DangerFullAccess = "dangerFullAccess",
        /// Tools may read files, but not write them.
        ReadOnly(ReadOnlySandboxPolicy) = "readOnly",
        /// The server adds no sandbox, because it already runs inside one.
        ExternalSandbox(ExternalSandboxSandboxPolicy) = "externalSandbox",
        /// Tools may read files, and write inside the workspace.
        WorkspaceWrite(WorkspaceWriteSandboxPolicy) = "workspaceWrite",
    }
}

/// Details of a read-only sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadOnlySandboxPolicy {
    /// Whether tools may use the network. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub network_access: bool,
}

/// Details of a sandbox that is provided from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSandboxSandboxPolicy {
    /// Whether the external sandbox allows network access. Defaults to `restricted`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub network_access: NetworkAccess,
}

/// Details of a sandbox that allows writing inside the workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceWriteSandboxPolicy {
    /// Makes `/tmp` read-only. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_slash_tmp: bool,
    /// Makes the directory named by `TMPDIR` read-only. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub exclude_tmpdir_env_var: bool,
    /// Whether tools may use the network. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub network_access: bool,
    /// Absolute paths that are writable in addition to the working directory. Defaults to none.
    #[serde(default, deserialize_with = "null_as_default")]
    pub writable_roots: Vec<String>,
}

/// The permission profile of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivePermissionProfile {
    /// Id of the profile; ids of built-in profiles begin with a colon, such as `:workspace`.
    pub id: String,
    /// Id of the profile that it extends; null if there is none.
    pub extends: Option<String>,
}

/// A permission profile in `permissionProfile/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileSummary {
    /// Id of the profile, as accepted by `permissions` of `thread/start` or `turn/start`.
    pub id: String,
    /// False when an administrator's requirements forbid the profile.
    pub allowed: bool,
    /// Description for the user, in one line.
    pub description: Option<String>,
}

/// Permissions that one command requests beyond the sandbox, shown with its approval request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalPermissionProfile {
    /// Requested access to paths; null requests none.
    pub file_system: Option<AdditionalFileSystemPermissions>,
    /// Requested network access; null requests none.
    pub network: Option<AdditionalNetworkPermissions>,
}

/// Network connection that a command requests, shown with its approval request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkApprovalContext {
    /// Host to connect to.
    pub host: String,
    /// Protocol of the connection.
    pub protocol: NetworkApprovalProtocol,
}

/// Rule about one host that the server proposes and the client may accept with its decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyAmendment {
    /// Whether the rule allows or denies connections to the host.
    pub action: NetworkPolicyRuleAction,
    /// Host of the rule.
    pub host: String,
}

/// Permissions requested by `item/permissions/requestApproval`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestPermissionProfile {
    /// Requested access to paths; null requests none.
    pub file_system: Option<AdditionalFileSystemPermissions>,
    /// Requested network access; null requests none.
    pub network: Option<AdditionalNetworkPermissions>,
}

/// Permissions granted in response to `item/permissions/requestApproval`: all of the requested
/// ones, or fewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantedPermissionProfile {
    /// Granted access to paths; null grants none.
    pub file_system: Option<AdditionalFileSystemPermissions>,
    /// Granted network access; null grants none.
    pub network: Option<AdditionalNetworkPermissions>,
}

open_enum! {
    /// Lifetime of granted permissions. Defaults to `turn`.
    pub enum PermissionGrantScope or Turn {
        /// Until the turn ends.
        Turn = "turn",
        /// For the rest of the thread's session.
        Session = "session",
    }
}

open_enum! {
    /// Whether an external sandbox allows network access. Defaults to `restricted`.
    pub enum NetworkAccess or Restricted {
        /// The sandbox restricts the network.
        Restricted = "restricted",
        /// The sandbox allows network access.
        Enabled = "enabled",
    }
}

/// Access to paths beyond the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalFileSystemPermissions {
    /// Paths with their access modes; null for none.
    pub entries: Option<Vec<FileSystemSandboxEntry>>,
    /// Maximum directory depth of glob patterns, at least 1; null leaves it to the server.
    pub glob_scan_max_depth: Option<NonZeroU64>,
    /// Readable paths; an older form of `entries`.
    pub read: Option<Vec<String>>,
    /// Writable paths; an older form of `entries`.
    pub write: Option<Vec<String>>,
}

/// Access to the network beyond the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalNetworkPermissions {
    /// Whether network access is allowed; null keeps the current setting.
    pub enabled: Option<bool>,
}

open_enum! {
    /// Protocol of a connection.
    pub enum NetworkApprovalProtocol {
        /// Plain HTTP, without TLS.
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
    /// Effect of a rule on connections to its host.
    pub enum NetworkPolicyRuleAction {
        /// Connections are allowed.
        Allow = "allow",
        /// Connections are rejected.
        Deny = "deny",
    }
}

/// A path with its access mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSystemSandboxEntry {
    /// Access mode of the path.
    pub access: FileSystemAccessMode,
    /// Path or pattern to which the access mode applies.
    pub path: FileSystemPath,
}

open_enum! {
    /// Access mode of a path.
    pub enum FileSystemAccessMode {
        /// Files may be read.
        Read = "read",
        /// Files may be read and written.
        Write = "write",
        /// No access is allowed.
        Deny = "deny",
    }
}

tagged! {
    /// Location in the file system: a path, a pattern, or a well-known location.
    pub enum FileSystemPath by "type" {
        /// A single path, with everything below it.
        Path(PathFileSystemPath) = "path",
        /// All paths that match a pattern.
        GlobPattern(GlobPatternFileSystemPath) = "glob_pattern",
        /// A well-known location.
        Special(SpecialFileSystemPath) = "special",
    }
}

/// A location given by its path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathFileSystemPath {
    /// Path of the location.
    pub path: String,
}

/// Locations given by a pattern.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlobPatternFileSystemPath {
    /// Glob pattern of the paths.
    pub pattern: String,
}

/// A location given by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpecialFileSystemPath {
    /// Name of the location.
    pub value: FileSystemSpecialPath,
}

tagged! {
    /// A well-known location, resolved on each machine.
    pub enum FileSystemSpecialPath by "kind" {
        /// The whole file system.
        Root = "root",
        /// The system paths that programs need to run.
        Minimal = "minimal",
        /// The workspace directories of the thread.
        ProjectRoots(ProjectRootsFileSystemSpecialPath) = "project_roots",
        /// The directory named by `TMPDIR`.
        Tmpdir = "tmpdir",
        /// The directory `/tmp`.
        SlashTmp = "slash_tmp",
        /// A location that the sender named but could not resolve, preserved as it is.
        Unknown(UnknownFileSystemSpecialPath) = "unknown",
    }
}

/// The workspace directories, or a subpath of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectRootsFileSystemSpecialPath {
    /// Path inside each directory; null means the directory itself.
    pub subpath: Option<String>,
}

/// A location whose name is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownFileSystemSpecialPath {
    /// The name as the sender wrote it.
    pub path: String,
    /// Path inside the location; null means the location itself.
    pub subpath: Option<String>,
}

/// An approval policy with a setting for each kind of request. Requests that are disabled are
/// rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GranularAskForApproval {
    /// Whether MCP servers may ask the user for input.
    #[serde(rename = "mcp_elicitations")]
    pub mcp_elicitations: bool,
    /// Whether a rule may require an approval.
    pub rules: bool,
    /// Whether the agent may request to run a command outside the sandbox.
    #[serde(rename = "sandbox_approval")]
    pub sandbox_approval: bool,
    /// Whether the agent may request more permissions. False by default.
    #[serde(rename = "request_permissions")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub request_permissions: bool,
    /// Whether the agent may request to run a script of a skill. False by default.
    #[serde(rename = "skill_approval")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub skill_approval: bool,
}
