//! How turns run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SpendLimits, is_false};

/// How turns run. What is absent is left to the configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The working folder.
    #[serde(default)]
    pub cwd: String,
    /// Further folders of the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Real paths, without links, of the folders that these settings name, as they were when a client named them. A
    /// folder without an entry had no links. Commands may have put a link there since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub real_paths: BTreeMap<String, String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its provider, as the configuration names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Who is asked in a turn instead once it fails, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<Route>,
    /// How hard it should think.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// How its thinking is summed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The provider's tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Its tone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personality: Option<String>,
    /// Text in place of the built-in instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_instructions: Option<String>,
    /// Text beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub developer_instructions: Option<String>,
    /// When to ask.
    #[serde(default)]
    pub approval: ApprovalPolicy,
    /// Who is asked.
    #[serde(default)]
    pub reviewer: Reviewer,
    /// What tools may touch.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The permission profile that the sandbox was made from; absent if it was made from none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<PermissionProfile>,
    /// Tools the client runs, as it described them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<Value>,
    /// Whether there is no place to work in, so that the agent has no tools of its own.
    #[serde(rename = "nowhere", default, skip_serializing_if = "super::is_false")]
    pub no_environment: bool,
    /// How many tokens the model can read at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Above this many tokens the history is condensed before the next call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact_above: Option<u64>,
    /// What each turn may use.
    #[serde(default, skip_serializing_if = "SpendLimits::is_empty")]
    pub turn_budget: SpendLimits,
    /// What all turns together may use.
    #[serde(default, skip_serializing_if = "SpendLimits::is_empty")]
    pub thread_budget: SpendLimits,
    /// What becomes of a turn whose owner died; if nothing is said, the next owner's own way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
}

impl Settings {
    /// All folders that these settings name.
    pub fn folders(&self) -> impl Iterator<Item = &String> {
        let beside = self.sandbox.roots();
        std::iter::once(&self.cwd).chain(&self.roots).chain(beside)
    }

    /// The real path of a folder that these settings name.
    pub fn real<'a>(&'a self, folder: &'a str) -> &'a str {
        self.real_paths.get(folder).map_or(folder, String::as_str)
    }
}

/// A model, and who provides it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The provider, as the configuration names it.
    pub provider: String,
    /// The model, as the provider names it.
    pub model: String,
}

impl Route {
    /// Reads `provider/model`. What a provider calls its models may have further strokes.
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

/// When to ask.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ApprovalPolicy {
    /// Before every command not known to be harmless.
    Untrusted,
    /// When the agent asks to go beyond its fence.
    #[default]
    OnRequest,
    /// Never.
    Never,
    /// As chosen for each kind of question, kept as it came.
    Granular(Value),
}

/// Who is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reviewer {
    /// The user.
    #[default]
    User,
    /// A reviewing agent.
    Agent,
}

/// What tools may touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Sandbox {
    /// Everything.
    FullAccess,
    /// Nothing; they may read.
    ReadOnly {
        /// Places that may be written all the same.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roots: Vec<String>,
        /// Whether they may use the network.
        #[serde(default, skip_serializing_if = "is_false")]
        network: bool,
    },
    /// The workspace.
    WorkspaceWrite {
        /// Folders besides the working one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roots: Vec<String>,
        /// Whether they may use the network.
        #[serde(default, skip_serializing_if = "is_false")]
        network: bool,
        /// Whether `/tmp` stays closed.
        #[serde(default, skip_serializing_if = "is_false")]
        without_tmp: bool,
        /// Whether the folder named by `TMPDIR` stays closed.
        #[serde(default, skip_serializing_if = "is_false")]
        without_tmpdir: bool,
    },
    /// As someone else's fence allows.
    External {
        /// Whether that fence lets the network through.
        #[serde(default, skip_serializing_if = "is_false")]
        network: bool,
    },
}

impl Sandbox {
    /// Folders that it lets tools write besides those of the thread.
    pub fn roots(&self) -> &[String] {
        match self {
            Self::ReadOnly { roots, .. } | Self::WorkspaceWrite { roots, .. } => roots,
            Self::FullAccess | Self::External { .. } => &[],
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::ReadOnly {
            roots: Vec::new(),
            network: false,
        }
    }
}

/// A permission profile, by the names that clients are shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfile {
    /// Its id; those built in begin with a colon.
    pub id: String,
    /// The id of the profile that it extends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
}

/// What becomes of a turn whose owner died.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Recovery {
    /// The next owner goes on with it.
    #[default]
    Continue,
    /// The next owner ends it.
    Interrupt,
}
