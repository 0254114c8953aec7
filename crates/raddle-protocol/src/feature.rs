//! What a server offers and how it is doing: experimental features, collaboration modes, diagnostics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `server/diagnostics`: none, but the object must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerDiagnosticsParams {}

/// Result of `server/diagnostics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerDiagnosticsResponse {
    /// What the server counts about itself, as it stands now.
    pub gauges: Vec<ServerDiagnosticsGauge>,
    /// The server's process.
    pub process: ServerDiagnosticsProcess,
}

/// Params of `experimentalFeature/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeatureListParams {
    /// A loaded thread whose configuration decides what is enabled; null asks the server's own.
    pub thread_id: Option<ThreadId>,
    /// Where to go on, from `nextCursor` of the page before; null starts at the beginning.
    pub cursor: Option<String>,
    /// The most entries to return; null lets the server choose.
    pub limit: Option<u32>,
}

/// Result of `experimentalFeature/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeatureListResponse {
    /// One page of features.
    pub data: Vec<ExperimentalFeature>,
    /// The cursor of the next page; null after the last.
    pub next_cursor: Option<String>,
}

/// Params of `collaborationMode/list`: none, but the object must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollaborationModeListParams {}

/// Result of `collaborationMode/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollaborationModeListResponse {
    /// The modes a client can offer, all in one page.
    pub data: Vec<CollaborationModeMask>,
}

open_enum! {
    /// The tone asked of the model. Deprecated: the values are accepted and choose nothing.
    pub enum Personality {
        /// No tone in particular.
        None = "none",
        /// Warm.
        Friendly = "friendly",
        /// Matter-of-fact.
        Pragmatic = "pragmatic",
    }
}

/// A way of working together, with the settings that go with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollaborationMode {
    /// Which way.
    pub mode: ModeKind,
    /// The settings in force while it lasts.
    pub settings: Settings,
}

/// One number the server reports about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerDiagnosticsGauge {
    /// What is counted.
    pub name: String,
    /// How many there are now.
    pub value: u64,
}

/// The server's process, as the operating system sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerDiagnosticsProcess {
    /// Its process id.
    pub id: u32,
    /// The memory charged to it, in bytes; null where the system does not tell.
    pub physical_footprint_bytes: Option<u64>,
    /// Its resident memory, in bytes; null where the system does not tell.
    pub resident_memory_bytes: Option<u64>,
}

/// A feature that can be switched on or off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeature {
    /// Whether it is on when no one has chosen.
    pub default_enabled: bool,
    /// Whether it is on now.
    pub enabled: bool,
    /// The key that names it in configuration and on the command line; it does not change.
    pub name: String,
    /// How finished it is.
    pub stage: ExperimentalFeatureStage,
    /// What to tell users when it first appears; null unless its stage is `beta`.
    pub announcement: Option<String>,
    /// What it does, in a line; null unless its stage is `beta`.
    pub description: Option<String>,
    /// What to call it before users; null unless its stage is `beta`.
    pub display_name: Option<String>,
}

/// A mode a client can offer. What it leaves null stays as the thread has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollaborationModeMask {
    /// What to call it before users.
    pub name: String,
    /// The way of working it chooses.
    pub mode: Option<ModeKind>,
    /// The model it chooses.
    pub model: Option<String>,
    /// How hard the model should think in it. Spelt `reasoning_effort` on the wire.
    #[serde(rename = "reasoning_effort")]
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    #[schemars(length(min = 1))]
    pub reasoning_effort: Maybe<String>,
}

open_enum! {
    /// A way of working together.
    pub enum ModeKind {
        /// Talk and plan first, change nothing yet.
        Plan = "plan",
        /// Do the work.
        Default = "default",
    }
}

/// The settings of a collaboration mode. Their names are in snake_case on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// The model to use.
    pub model: String,
    /// Instructions for the model; null uses those built in for the mode.
    #[serde(rename = "developer_instructions")]
    pub developer_instructions: Option<String>,
    /// How hard the model should think; null chooses none.
    #[serde(rename = "reasoning_effort")]
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
}

open_enum! {
    /// How finished a feature is.
    pub enum ExperimentalFeatureStage {
        /// Ready to be tried by users who want to.
        Beta = "beta",
        /// Unfinished, and not meant for users yet.
        UnderDevelopment = "underDevelopment",
        /// Finished.
        Stable = "stable",
        /// Still works, but is going away.
        Deprecated = "deprecated",
        /// Gone; only its name is still accepted.
        Removed = "removed",
    }
}
