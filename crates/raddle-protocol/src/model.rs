//! Models: the catalogue that a client chooses from, and capabilities of the provider.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `model/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelListParams {
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Also lists models that pickers hide. Null means false.
    pub include_hidden: Option<bool>,
    /// Maximum number of entries on the page; null leaves it to the server.
    pub limit: Option<u32>,
}

/// Result of `model/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelListResponse {
    /// The models, in display order. Some clients refuse to start on an empty list.
    pub data: Vec<Model>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `modelProvider/capabilities/read`: an empty object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelProviderCapabilitiesReadParams {}

/// Result of `modelProvider/capabilities/read`: built-in capabilities of the configured provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelProviderCapabilitiesReadResponse {
    /// Whether the provider generates images.
    pub image_generation: bool,
    /// Whether the provider searches the web.
    pub web_search: bool,
}

/// One model in the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Id of the entry, unique in the list.
    pub id: String,
    /// Reasoning effort by default; one of `supportedReasoningEfforts`.
    #[schemars(length(min = 1))]
    pub default_reasoning_effort: String,
    /// Strengths of the model, in one sentence.
    pub description: String,
    /// Human-readable name of the model.
    pub display_name: String,
    /// Whether pickers hide the model.
    pub hidden: bool,
    /// Whether the model is the default.
    pub is_default: bool,
    /// The name to pass as `model` in `thread/start` and `turn/start`.
    pub model: String,
    /// Reasoning efforts that the model supports, in display order.
    pub supported_reasoning_efforts: Vec<ReasoningEffortOption>,
    /// Older form of `serviceTiers`: ids only. Absent means none.
    #[serde(default, deserialize_with = "null_as_default")]
    pub additional_speed_tiers: Vec<String>,
    /// Announcement of the model to display once; null if there is none.
    pub availability_nux: Option<ModelAvailabilityNux>,
    /// Vendor programmes under which this caller may use the model; null if the catalogue does not
    /// say.
    pub available_access_programs: Option<ModelAccessPrograms>,
    /// Id of the default service tier; null uses the provider's default.
    pub default_service_tier: Option<String>,
    /// Kinds of user input that the model accepts. On the wire, an absent list means text and
    /// images.
    #[serde(default = "text_and_image")]
    pub input_modalities: Vec<InputModality>,
    /// Specialty of the model; null for a general model.
    pub model_specialty: Option<String>,
    /// Version of the sub-agent tools that the model uses; null if the catalogue does not say.
    pub multi_agent_version: Option<MultiAgentVersion>,
    /// Service tiers of the model. Absent means no choice.
    #[serde(default, deserialize_with = "null_as_default")]
    pub service_tiers: Vec<ModelServiceTier>,
    /// Always false; kept for older clients.
    #[serde(default, deserialize_with = "null_as_default")]
    pub supports_personality: bool,
    /// Name of the successor model; null if there is none.
    pub upgrade: Option<String>,
    /// Successor model with display text; null if there is none.
    pub upgrade_info: Option<ModelUpgradeInfo>,
}

/// Vendor programmes under which a model may be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAccessPrograms {
    /// Programmes for security research, as accepted by `cyberAccessProgram` of `turn/start`.
    pub cyber: Vec<CyberAccessProgram>,
}

/// A reasoning effort that a model supports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningEffortOption {
    /// Human-readable description of the effort.
    pub description: String,
    /// The value to pass as `effort`, such as `low` or `high`; never empty.
    #[schemars(length(min = 1))]
    pub reasoning_effort: String,
}

/// Announcement of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAvailabilityNux {
    /// Text that announces the model to users.
    pub message: String,
}

open_enum! {
    /// Kind of user input.
    pub enum InputModality {
        /// Text input is accepted.
        Text = "text",
        /// Image input is accepted.
        Image = "image",
        /// Audio input is accepted.
        Audio = "audio",
    }
}

open_enum! {
    /// Version of the sub-agent tools that a model uses.
    pub enum MultiAgentVersion {
        /// The model uses no sub-agents.
        Disabled = "disabled",
        /// The first version of the tools.
        V1 = "v1",
        /// The second version of the tools.
        V2 = "v2",
    }
}

/// A service tier of a model, such as a faster one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelServiceTier {
    /// The value to pass as `serviceTier`.
    pub id: String,
    /// Human-readable description of benefits and cost.
    pub description: String,
    /// Human-readable name of the tier.
    pub name: String,
}

/// The successor of a model, with text for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUpgradeInfo {
    /// Successor, as named by `model`.
    pub model: String,
    /// Changes for the user, in Markdown.
    pub migration_markdown: Option<String>,
    /// URL of a page about the successor.
    pub model_link: Option<String>,
    /// Planned retirement time of the old model, in seconds since the epoch; null if not set. For
    /// information only.
    pub retirement_at: Option<i64>,
    /// One line that suggests the change.
    pub upgrade_copy: Option<String>,
}

/// Input modalities of a model whose list is absent.
fn text_and_image() -> Vec<InputModality> {
    vec![InputModality::Text, InputModality::Image]
}
