//! Settings of a thread's turns.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SpendLimits, is_false};

/// Settings of a thread's turns. An absent value comes from the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Working folder of the agent.
    #[serde(default)]
    pub cwd: String,
    /// Further folders of the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Real paths, without links, of the folders that these settings name, as of the time when a
    /// client named them. A folder without an entry had no links. Commands may have created a link
    /// there since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub real_paths: BTreeMap<String, String>,
    /// Name of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Provider of the model, as the configuration names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Models to call in a turn once this one fails, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Route>,
    /// Reasoning effort of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Style of the reasoning summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Service tier of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Tone of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personality: Option<String>,
    /// Text in place of the built-in instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_instructions: Option<String>,
    /// Text in addition to the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    /// Policy on when to ask for approval.
    #[serde(default)]
    pub approval: ApprovalPolicy,
    /// Reviewer of requests for approval.
    #[serde(default)]
    pub reviewer: Reviewer,
    /// Sandbox of the tools.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Sandbox before rights were granted, if any were. It is never stored.
    #[serde(skip)]
    pub sandbox_without_grants: Option<Box<Sandbox>>,
    /// Permission profile that defines the sandbox; absent if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<PermissionProfile>,
    /// Tools that the client runs, as it described them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<Value>,
    /// Whether the agent has no environment, and so no built-in tools.
    #[serde(rename = "nowhere", default, skip_serializing_if = "super::is_false")]
    pub no_environment: bool,
    /// Environment variables that a client or the configuration sets for the agent's commands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Context window of the model, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Tokens above which the history is summarised before the next call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_above: Option<u64>,
    /// Budget of each turn.
    #[serde(default, skip_serializing_if = "SpendLimits::is_empty")]
    pub turn_budget: SpendLimits,
    /// Budget of all turns together.
    #[serde(default, skip_serializing_if = "SpendLimits::is_empty")]
    pub thread_budget: SpendLimits,
    /// Recovery of a turn whose owner died; `None` uses the next owner's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
}

impl Settings {
    /// Returns all folders that these settings name.
    pub fn folders(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.cwd)
            .chain(&self.roots)
            .chain(self.sandbox.folders())
    }

    /// Returns these settings without rights that the user granted.
    pub fn without_grants(&self) -> Self {
        let mut settings = self.clone();
        if let Some(sandbox) = settings.sandbox_without_grants.take() {
            settings.sandbox = *sandbox;
        }
        settings
    }

    /// Returns the real path of a folder that these settings name.
    pub fn real<'a>(&'a self, folder: &'a str) -> &'a str {
        self.real_paths.get(folder).map_or(folder, String::as_str)
    }
}

/// A model and its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Provider, as the configuration names it.
    pub provider: String,
    /// Model, as the provider names it.
    pub model: String,
}

impl Route {
    /// Parses `provider/model`. The provider's name of a model may contain more slashes.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, model) = text.split_once('/')?;
        let is_whole = !provider.is_empty() && !model.is_empty();
        is_whole.then(|| Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
        })
    }
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// Policy on when to ask for approval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ApprovalPolicy {
    /// Before every command not known to be harmless.
    Untrusted,
    /// When the agent asks to go beyond its sandbox.
    #[default]
    OnRequest,
    /// Requests for approval never happen.
    Never,
    /// As chosen for each kind of request, stored as received.
    Granular(Value),
}

impl ApprovalPolicy {
    /// Key of the questions of MCP servers, and of approvals of their tools.
    pub const MCP: &str = "mcp_elicitations";

    /// Key of the question whether the folder of skills is trusted.
    pub const SKILLS: &str = "skill_approval";

    /// Whether the user may be asked about this kind, a key of the granular policy.
    pub fn may_ask(&self, kind: &str) -> bool {
        match self {
            Self::Untrusted | Self::OnRequest => true,
            Self::Never => false,
            Self::Granular(kinds) => {
                let kinds = kinds.get("granular").unwrap_or(kinds);
                kinds.get(kind).and_then(Value::as_bool) == Some(true)
            }
        }
    }
}

/// Reviewer of requests for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reviewer {
    /// The user decides on them.
    #[default]
    User,
    /// A reviewing agent decides.
    Agent,
}

/// Sandbox of the tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Sandbox {
    /// No sandbox: tools may access everything.
    FullAccess,
    /// Tools may read, and write nothing.
    ReadOnly {
        /// Paths that may be written nevertheless.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roots: Vec<String>,
        /// Whether tools may use the network.
        #[serde(default, skip_serializing_if = "is_false")]
        network: bool,
        /// Limit on reads: see [`Sandbox::reads`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reads: Option<Vec<String>>,
    },
    /// Tools may write to the workspace.
    WorkspaceWrite {
        /// Writable folders besides the working one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roots: Vec<String>,
        /// Whether tools may use the network.
        #[serde(default, skip_serializing_if = "is_false")]
        network: bool,
        /// Whether `/tmp` is not writable.
        #[serde(default, skip_serializing_if = "is_false")]
        without_tmp: bool,
        /// Whether the folder named by `TMPDIR` is not writable.
        #[serde(default, skip_serializing_if = "is_false")]
        without_tmpdir: bool,
        /// Limit on reads: see [`Sandbox::reads`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reads: Option<Vec<String>>,
    },
    /// Whatever the sandbox of another program allows.
    External {
        /// Whether that sandbox allows the network.
        #[serde(default, skip_serializing_if = "is_false")]
        network: bool,
    },
}

impl Sandbox {
    /// Folders that tools may write besides those of the thread.
    pub fn roots(&self) -> &[String] {
        match self {
            Self::ReadOnly { roots, .. } | Self::WorkspaceWrite { roots, .. } => roots,
            Self::FullAccess | Self::External { .. } => &[],
        }
    }

    /// Returns the same sandbox with other paths in place of some.
    #[must_use]
    pub fn with_paths(mut self, paths: &BTreeMap<String, String>) -> Self {
        let (Self::ReadOnly { roots, reads, .. } | Self::WorkspaceWrite { roots, reads, .. }) =
            &mut self
        else {
            return self;
        };
        let named = roots.iter_mut().chain(reads.iter_mut().flatten());
        replace_paths(named, paths);
        self
    }

    /// Whether commands may write no folder.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::ReadOnly { roots, .. } if roots.is_empty())
    }

    /// Paths that tools may read besides the workspace, the writable folders and the system's
    /// programs and settings. `None`: every file.
    pub fn reads(&self) -> Option<&[String]> {
        match self {
            Self::ReadOnly { reads, .. } | Self::WorkspaceWrite { reads, .. } => reads.as_deref(),
            Self::FullAccess | Self::External { .. } => None,
        }
    }

    /// Returns all paths that the sandbox itself names.
    pub fn folders(&self) -> impl Iterator<Item = &String> {
        self.roots().iter().chain(self.reads().unwrap_or_default())
    }
}

/// Puts other paths in place of some.
pub(crate) fn replace_paths<'a>(
    named: impl Iterator<Item = &'a mut String>,
    paths: &BTreeMap<String, String>,
) {
    for path in named {
        if let Some(other) = paths.get(path) {
            path.clone_from(other);
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::ReadOnly {
            roots: Vec::new(),
            network: false,
            reads: None,
        }
    }
}

/// A permission profile, by the names that clients see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfile {
    /// Id of the profile; built-in ones begin with a colon.
    pub id: String,
    /// Id of the profile that it extends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
}

/// Recovery of a turn whose owner died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Recovery {
    /// The next owner continues it.
    #[default]
    Continue,
    /// The next owner ends it.
    Interrupt,
}
