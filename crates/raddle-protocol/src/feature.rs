//! Server features and state: experimental features, collaboration modes, diagnostics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `server/diagnostics`: an empty object, which is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerDiagnosticsParams {}

/// Result of `server/diagnostics`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerDiagnosticsResponse {
    /// Current values of the server's gauges.
    pub gauges: Vec<ServerDiagnosticsGauge>,
    /// State of the server process.
    pub process: ServerDiagnosticsProcess,
}

/// Params of `experimentalFeature/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeatureListParams {
    /// A loaded thread whose configuration determines the enabled features; null uses the server's
    /// configuration.
    pub thread_id: Option<ThreadId>,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Maximum number of entries on the page; null leaves it to the server.
    pub limit: Option<u32>,
}

/// Result of `experimentalFeature/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeatureListResponse {
    /// One page of features.
    pub data: Vec<ExperimentalFeature>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `collaborationMode/list`: an empty object, which is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollaborationModeListParams {}

/// Result of `collaborationMode/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollaborationModeListResponse {
    /// All collaboration modes, in one page.
    pub data: Vec<CollaborationModeMask>,
}

open_enum! {
    /// Tone of the agent. Deprecated: the values are accepted without effect.
    pub enum Personality {
        /// No particular tone.
        None = "none",
        /// Warm, friendly tone.
        Friendly = "friendly",
        /// Matter-of-fact tone.
        Pragmatic = "pragmatic",
    }
}

/// A collaboration mode, with its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollaborationMode {
    /// Kind of the mode.
    pub mode: ModeKind,
    /// Settings in effect while the mode is active.
    pub settings: Settings,
}

/// One number the server reports about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerDiagnosticsGauge {
    /// Name of the gauge.
    pub name: String,
    /// Current value of the gauge.
    pub value: u64,
}

/// The server's process, as the operating system sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerDiagnosticsProcess {
    /// Process id of the server.
    pub id: u32,
    /// Physical memory footprint in bytes; null where the system does not report it.
    pub physical_footprint_bytes: Option<u64>,
    /// Resident memory in bytes; null where the system does not report it.
    pub resident_memory_bytes: Option<u64>,
}

/// A feature that can be enabled or disabled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalFeature {
    /// Whether the feature is enabled by default.
    pub default_enabled: bool,
    /// Whether the feature is enabled now.
    pub enabled: bool,
    /// Stable key of the feature in the configuration and on the command line.
    pub name: String,
    /// Maturity of the feature.
    pub stage: ExperimentalFeatureStage,
    /// Announcement for users when the feature first appears; null unless its stage is `beta`.
    pub announcement: Option<String>,
    /// Description in one line; null unless the stage is `beta`.
    pub description: Option<String>,
    /// Display name; null unless the stage is `beta`.
    pub display_name: Option<String>,
}

/// A mode that a client can offer. Null members keep the thread's setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollaborationModeMask {
    /// Display name of the mode.
    pub name: String,
    /// Kind of the mode.
    pub mode: Option<ModeKind>,
    /// Model that the mode selects.
    pub model: Option<String>,
    /// Reasoning effort that the mode selects. Spelled `reasoning_effort` on the wire.
    #[serde(rename = "reasoning_effort")]
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    #[schemars(length(min = 1))]
    pub reasoning_effort: Maybe<String>,
}

open_enum! {
    /// Kind of a collaboration mode.
    pub enum ModeKind {
        /// The agent discusses and plans, without changes yet.
        Plan = "plan",
        /// The agent does the work.
        Default = "default",
    }
}

/// Settings of a collaboration mode. Their names are in snake_case on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Model of the mode.
    pub model: String,
    /// Instructions for the model; null uses the built-in instructions of the mode.
    #[serde(rename = "developer_instructions")]
    pub developer_instructions: Option<String>,
    /// Reasoning effort; null selects none.
    #[serde(rename = "reasoning_effort")]
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
}

open_enum! {
    /// Maturity of a feature.
    pub enum ExperimentalFeatureStage {
        /// Ready for users who opt in.
        Beta = "beta",
        /// Unfinished, and not for users yet.
        UnderDevelopment = "underDevelopment",
        /// Finished, and ready for general use.
        Stable = "stable",
        /// Still works, but will be removed.
        Deprecated = "deprecated",
        /// Removed; only its name is still accepted.
        Removed = "removed",
    }
}
