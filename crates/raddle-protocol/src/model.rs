//! Models: the catalogue a client picks from, and what the provider can do besides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `model/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelListParams {
    /// Where to go on, as `nextCursor` gave it; null starts at the beginning.
    pub cursor: Option<String>,
    /// Also list models that pickers do not show. Null means false.
    pub include_hidden: Option<bool>,
    /// The most entries in one page; null leaves it to the server.
    pub limit: Option<u32>,
}

/// Result of `model/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelListResponse {
    /// The models, in the order to show them. Some clients refuse to start on an empty list.
    pub data: Vec<Model>,
    /// Pass it as `cursor` for the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// Params of `modelProvider/capabilities/read`: an empty object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelProviderCapabilitiesReadParams {}

/// Result of `modelProvider/capabilities/read`: what the configured provider offers by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelProviderCapabilitiesReadResponse {
    /// Whether it makes images.
    pub image_generation: bool,
    /// Whether it searches the web.
    pub web_search: bool,
}

/// One model in the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The entry's own id, unique in the list.
    pub id: String,
    /// The effort used when none is chosen; one of `supportedReasoningEfforts`.
    #[schemars(length(min = 1))]
    pub default_reasoning_effort: String,
    /// What it is good for, in a sentence.
    pub description: String,
    /// Its name for people to read.
    pub display_name: String,
    /// Whether pickers leave it out.
    pub hidden: bool,
    /// Whether it is used when none is chosen.
    pub is_default: bool,
    /// The name to pass as `model` in `thread/start` and `turn/start`.
    pub model: String,
    /// The efforts it takes, in the order to show them.
    pub supported_reasoning_efforts: Vec<ReasoningEffortOption>,
    /// Older form of `serviceTiers`: ids only. Absent means none.
    #[serde(default, deserialize_with = "null_as_default")]
    pub additional_speed_tiers: Vec<String>,
    /// A note to show once about the model's arrival; null for none.
    pub availability_nux: Option<ModelAvailabilityNux>,
    /// Vendor programmes under which this caller may use it; null if the catalogue is silent.
    pub available_access_programs: Option<ModelAccessPrograms>,
    /// The id of the tier used when none is chosen; null leaves it to the provider.
    pub default_service_tier: Option<String>,
    /// Kinds of user input it takes. On the wire an absent list means text and images.
    #[serde(default = "text_and_image")]
    pub input_modalities: Vec<InputModality>,
    /// What it specialises in; null for a general model.
    pub model_specialty: Option<String>,
    /// How it works with sub-agents; null if the catalogue is silent.
    pub multi_agent_version: Option<MultiAgentVersion>,
    /// The tiers it can be served at. Absent means no choice.
    #[serde(default, deserialize_with = "null_as_default")]
    pub service_tiers: Vec<ModelServiceTier>,
    /// Always false by now; kept for older clients.
    #[serde(default, deserialize_with = "null_as_default")]
    pub supports_personality: bool,
    /// The model that succeeds it, as a bare name; null if none does.
    pub upgrade: Option<String>,
    /// The same with words to show; null if none succeeds it.
    pub upgrade_info: Option<ModelUpgradeInfo>,
}

/// Vendor programmes under which a model may be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAccessPrograms {
    /// Programmes for security research, as `cyberAccessProgram` of `turn/start` takes them.
    pub cyber: Vec<CyberAccessProgram>,
}

/// A reasoning effort a model takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningEffortOption {
    /// What choosing it means, for people to read.
    pub description: String,
    /// The value to pass as `effort`, such as `low` or `high`; never empty.
    #[schemars(length(min = 1))]
    pub reasoning_effort: String,
}

/// A note about a model's arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelAvailabilityNux {
    /// The words to show.
    pub message: String,
}

open_enum! {
    /// A kind of user input.
    pub enum InputModality {
        /// Text.
        Text = "text",
        /// Images.
        Image = "image",
        /// Audio.
        Audio = "audio",
    }
}

open_enum! {
    /// How a model works with sub-agents.
    pub enum MultiAgentVersion {
        /// Not at all.
        Disabled = "disabled",
        /// With the first set of tools for it.
        V1 = "v1",
        /// With the second set of tools for it.
        V2 = "v2",
    }
}

/// A tier of service a model can be had at, such as a faster one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelServiceTier {
    /// The value to pass as `serviceTier`.
    pub id: String,
    /// What it gives and costs, for people to read.
    pub description: String,
    /// Its name for people to read.
    pub name: String,
}

/// The model that succeeds another, and how to tell the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUpgradeInfo {
    /// The successor, as `model` names it.
    pub model: String,
    /// What changes for the user, in Markdown.
    pub migration_markdown: Option<String>,
    /// A page about the successor.
    pub model_link: Option<String>,
    /// When the old model is to go, in seconds since the epoch; null if not set. For information only.
    pub retirement_at: Option<i64>,
    /// One line that proposes the change.
    pub upgrade_copy: Option<String>,
}

/// What a model takes when nothing is said.
fn text_and_image() -> Vec<InputModality> {
    vec![InputModality::Text, InputModality::Image]
}
