//! Configuration: reading it with its origins, writing it, the requirements set above it, and its warnings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `config/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReadParams {
    /// The folder to read the configuration for, with all project layers that apply there.
    /// Null leaves project layers out.
    pub cwd: Option<String>,
    /// Whether to return each layer by itself too. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub include_layers: bool,
}

/// Result of `config/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReadResponse {
    /// The configuration in force, all layers merged; its keys are in snake_case.
    pub config: Value,
    /// For each dotted key, the layer its value comes from.
    pub origins: BTreeMap<String, ConfigLayerMetadata>,
    /// The layers, the strongest first; null unless `includeLayers` was set.
    pub layers: Option<Vec<ConfigLayer>>,
}

/// Params of `config/value/write`: changes one value in a configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigValueWriteParams {
    /// The key to change, dotted.
    pub key_path: String,
    /// How the value meets what is there.
    pub merge_strategy: MergeStrategy,
    /// The value to store.
    pub value: Value,
    /// The version the file must still have; the write is refused if it differs. Null writes in any case.
    pub expected_version: Option<String>,
    /// The file to write; null means the user's own configuration file.
    pub file_path: Option<String>,
}

/// Result of `config/value/write` and `config/batchWrite`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigWriteResponse {
    /// The absolute path of the file that was written.
    pub file_path: String,
    /// Whether what was written is also in force.
    pub status: WriteStatus,
    /// The file's new version, such as `sha256:` and a digest.
    pub version: String,
    /// What hides the written value; null when nothing does.
    pub overridden_metadata: Option<OverriddenMetadata>,
}

/// Params of `config/batchWrite`: makes several changes to one configuration file in one write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigBatchWriteParams {
    /// The changes, made in order.
    pub edits: Vec<ConfigEdit>,
    /// The version the file must still have; the write is refused if it differs. Null writes in any case.
    pub expected_version: Option<String>,
    /// The file to write; null means the user's own configuration file.
    pub file_path: Option<String>,
    /// Whether loaded threads take up the changes at once. Defaults to false.
    /// Settings fixed when a thread opens, such as its model and effort, stay as they are.
    #[serde(default, deserialize_with = "null_as_default")]
    pub reload_user_config: bool,
}

/// Result of `configRequirements/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigRequirementsReadResponse {
    /// The limits an administrator has set on the configuration; null when there are none.
    pub requirements: Option<Value>,
    /// Whether the limits treat each speed mode by itself; null or absent means one limit covers all.
    pub supports_independent_speed_modes: Option<bool>,
}

/// `configWarning`: something in the configuration is wrong and was passed over. Also sent after `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigWarningNotification {
    /// What is wrong, in a line.
    pub summary: String,
    /// More about it, or what to do.
    pub details: Option<String>,
    /// The file it was found in; null when it came from no file.
    pub path: Option<String>,
    /// Where in the file; null when not known.
    pub range: Option<TextRange>,
}

/// Which layer a value comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayerMetadata {
    /// The layer's source.
    pub name: ConfigLayerSource,
    /// The layer's version, which changes with its content.
    pub version: String,
}

/// One layer of the configuration, before merging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayer {
    /// What this layer sets; its keys are in snake_case.
    pub config: Value,
    /// Where it comes from.
    pub name: ConfigLayerSource,
    /// Its version, which changes with its content.
    pub version: String,
    /// Why the layer is left out of the merge; null when it counts.
    pub disabled_reason: Option<String>,
}

open_enum! {
    /// How a written value meets what is there.
    pub enum MergeStrategy {
        /// The new value takes the old one's place whole.
        Replace = "replace",
        /// Tables are merged key by key; any other value is replaced.
        Upsert = "upsert",
    }
}

open_enum! {
    /// Whether a write took effect.
    pub enum WriteStatus {
        /// Written and in force.
        Ok = "ok",
        /// Written, but a stronger layer sets something else; `overriddenMetadata` says what.
        OkOverridden = "okOverridden",
    }
}

/// Why a written value is not in force.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverriddenMetadata {
    /// The value in force instead.
    pub effective_value: Value,
    /// The text for the user.
    pub message: String,
    /// The layer that wins.
    pub overriding_layer: ConfigLayerMetadata,
}

/// One change of `config/batchWrite`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigEdit {
    /// The key to change, dotted.
    pub key_path: String,
    /// How the value meets what is there.
    pub merge_strategy: MergeStrategy,
    /// The value to store.
    pub value: Value,
}

/// A stretch of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextRange {
    /// Where it ends.
    pub end: TextPosition,
    /// Where it begins.
    pub start: TextPosition,
}

tagged! {
    /// Where a layer of the configuration comes from.
    pub enum ConfigLayerSource by "type" {
        /// A file of defaults that came with the program.
        PackagedDefaults(PackagedDefaultsConfigLayerSource) = "packagedDefaults",
        /// Preferences that device management put on the machine; macOS only.
        Mdm(MdmConfigLayerSource) = "mdm",
        /// The machine's configuration file.
        System(SystemConfigLayerSource) = "system",
        /// Settings an organisation delivers over the network.
        EnterpriseManaged(EnterpriseManagedConfigLayerSource) = "enterpriseManaged",
        /// The user's configuration file, or one profile of it.
        User(UserConfigLayerSource) = "user",
        /// A configuration folder inside a project; several can apply to one working folder.
        Project(ProjectConfigLayerSource) = "project",
        /// Overrides given on the command line.
        SessionFlags = "sessionFlags",
        /// A managed file of the older kind, laid over all other layers.
        LegacyManagedConfigTomlFromFile(LegacyManagedConfigTomlFromFileConfigLayerSource) = "legacyManagedConfigTomlFromFile",
        /// Managed settings of the older kind, put there by device management.
        LegacyManagedConfigTomlFromMdm = "legacyManagedConfigTomlFromMdm",
    }
}

/// The defaults that came with the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackagedDefaultsConfigLayerSource {
    /// The absolute path of the file.
    pub file: String,
}

/// Preferences from device management.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MdmConfigLayerSource {
    /// The preference domain.
    pub domain: String,
    /// The key in that domain.
    pub key: String,
}

/// The machine's configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemConfigLayerSource {
    /// Its absolute path; the file itself may be missing.
    pub file: String,
}

/// Settings delivered by an organisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnterpriseManagedConfigLayerSource {
    /// The layer's id, the same across deliveries.
    pub id: String,
    /// The name its administrators know it by, fit to show when it is at fault.
    pub name: String,
}

/// The user's configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserConfigLayerSource {
    /// Its absolute path; the file itself may be missing.
    pub file: String,
    /// The profile this layer stands for; null for the base file.
    pub profile: Option<String>,
}

/// The configuration of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectConfigLayerSource {
    /// The absolute path of the project's `.codex` folder.
    pub dot_codex_folder: String,
}

/// A managed file of the older kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyManagedConfigTomlFromFileConfigLayerSource {
    /// The absolute path of the file.
    pub file: String,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextPosition {
    /// The column, counted from 1 in Unicode scalar values.
    pub column: u64,
    /// The line, counted from 1.
    pub line: u64,
}
