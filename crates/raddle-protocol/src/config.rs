//! Configuration: reading it with its origins, writing it, the administrator's requirements, and
//! warnings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `config/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReadParams {
    /// Directory for which to read the configuration, with all project layers that apply there.
    /// Null omits project layers.
    pub cwd: Option<String>,
    /// Whether to return each layer separately too. Defaults to false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub include_layers: bool,
}

/// Result of `config/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReadResponse {
    /// Effective configuration, merged from all layers; its keys are in snake_case.
    pub config: Value,
    /// Layer that provides the value of each dotted key.
    pub origins: BTreeMap<String, ConfigLayerMetadata>,
    /// The layers, in order of decreasing precedence; null unless `includeLayers` was set.
    pub layers: Option<Vec<ConfigLayer>>,
}

/// Params of `config/value/write`, which changes one value in a configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigValueWriteParams {
    /// Dotted key to change.
    pub key_path: String,
    /// How to combine the value with the existing one.
    pub merge_strategy: MergeStrategy,
    /// The value to store.
    pub value: Value,
    /// Expected version of the file; the write is rejected if it differs. Null writes
    /// unconditionally.
    pub expected_version: Option<String>,
    /// The file to write; null means the user's own configuration file.
    pub file_path: Option<String>,
}

/// Result of `config/value/write` and `config/batchWrite`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigWriteResponse {
    /// Absolute path of the written file.
    pub file_path: String,
    /// Whether the written value is also in effect.
    pub status: WriteStatus,
    /// New version of the file, such as `sha256:` and a digest.
    pub version: String,
    /// Layer that overrides the written value; null when none does.
    pub overridden_metadata: Option<OverriddenMetadata>,
}

/// Params of `config/batchWrite`, which makes several changes to one configuration file in one
/// write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigBatchWriteParams {
    /// Changes, applied in order.
    pub edits: Vec<ConfigEdit>,
    /// Expected version of the file; the write is rejected if it differs. Null writes
    /// unconditionally.
    pub expected_version: Option<String>,
    /// The file to write; null means the user's own configuration file.
    pub file_path: Option<String>,
    /// Whether loaded threads apply the changes immediately. Defaults to false. Settings fixed when
    /// a thread opens, such as its model and effort, do not change.
    #[serde(default, deserialize_with = "null_as_default")]
    pub reload_user_config: bool,
}

/// Result of `configRequirements/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigRequirementsReadResponse {
    /// Requirements that an administrator has set on the configuration; null when there are none.
    pub requirements: Option<Value>,
    /// Whether the requirements limit each speed mode separately; null or absent means one limit
    /// for all.
    pub supports_independent_speed_modes: Option<bool>,
}

/// `configWarning`: part of the configuration is invalid and was ignored. Also sent after
/// `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigWarningNotification {
    /// Description of the problem, in one line.
    pub summary: String,
    /// More details, or how to fix the problem.
    pub details: Option<String>,
    /// File with the problem; null when it is not in a file.
    pub path: Option<String>,
    /// Position in the file; null when unknown.
    pub range: Option<TextRange>,
}

/// Layer that provides a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayerMetadata {
    /// Source of the layer.
    pub name: ConfigLayerSource,
    /// Version of the layer, which changes with its content.
    pub version: String,
}

/// One layer of the configuration, before merging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigLayer {
    /// Values of this layer; keys are in snake_case.
    pub config: Value,
    /// Source of the layer.
    pub name: ConfigLayerSource,
    /// Version of the layer, which changes with its content.
    pub version: String,
    /// Reason why the layer is excluded from the merge; null when it is included.
    pub disabled_reason: Option<String>,
}

open_enum! {
    /// How to combine a written value with the existing one.
    pub enum MergeStrategy {
        /// The new value replaces the old one completely.
        Replace = "replace",
        /// Tables are merged key by key; other values are replaced.
        Upsert = "upsert",
    }
}

open_enum! {
    /// Whether a write took effect.
    pub enum WriteStatus {
        /// The value is written and in effect.
        Ok = "ok",
        /// The value is written, but a layer of higher precedence overrides it; see
        /// `overriddenMetadata`.
        OkOverridden = "okOverridden",
    }
}

/// Reason why a written value is not in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverriddenMetadata {
    /// The value that is in effect instead.
    pub effective_value: Value,
    /// Explanation for the user.
    pub message: String,
    /// The layer that takes precedence.
    pub overriding_layer: ConfigLayerMetadata,
}

/// One change of `config/batchWrite`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigEdit {
    /// Dotted key to change.
    pub key_path: String,
    /// How to combine the value with the existing one.
    pub merge_strategy: MergeStrategy,
    /// The value to store.
    pub value: Value,
}

/// A range of text in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextRange {
    /// End of the range.
    pub end: TextPosition,
    /// Start of the range.
    pub start: TextPosition,
}

tagged! {
    /// Source of a configuration layer.
    pub enum ConfigLayerSource by "type" {
        /// A file of defaults that is part of the installation.
        PackagedDefaults(PackagedDefaultsConfigLayerSource) = "packagedDefaults",
        /// Preferences set by device management; macOS only.
        Mdm(MdmConfigLayerSource) = "mdm",
        /// The configuration file of the machine.
        System(SystemConfigLayerSource) = "system",
        /// Settings that an organisation delivers over the network.
        EnterpriseManaged(EnterpriseManagedConfigLayerSource) = "enterpriseManaged",
        /// The user's configuration file, or one profile of it.
        User(UserConfigLayerSource) = "user",
        /// A configuration directory inside a project; several can apply to one working directory.
        Project(ProjectConfigLayerSource) = "project",
        /// Overrides from the command line.
        SessionFlags = "sessionFlags",
        /// A legacy managed file, which overrides all other layers.
        LegacyManagedConfigTomlFromFile(LegacyManagedConfigTomlFromFileConfigLayerSource) = "legacyManagedConfigTomlFromFile",
        /// Legacy managed settings, set by device management.
        LegacyManagedConfigTomlFromMdm = "legacyManagedConfigTomlFromMdm",
    }
}

/// The defaults of the installation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackagedDefaultsConfigLayerSource {
    /// Absolute path of the file.
    pub file: String,
}

/// Preferences from device management.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MdmConfigLayerSource {
    /// Domain of the preference.
    pub domain: String,
    /// Key of the preference in that domain.
    pub key: String,
}

/// The configuration file of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemConfigLayerSource {
    /// Absolute path of the file, which may be missing.
    pub file: String,
}

/// Settings delivered by an organisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnterpriseManagedConfigLayerSource {
    /// Id of the layer, stable across deliveries.
    pub id: String,
    /// Name that administrators know the layer by, suitable for error messages.
    pub name: String,
}

/// The user's configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserConfigLayerSource {
    /// Absolute path of the file, which may be missing.
    pub file: String,
    /// Profile that this layer represents; null for the base file.
    pub profile: Option<String>,
}

/// The configuration of a project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectConfigLayerSource {
    /// Absolute path of the project's `.codex` directory.
    pub dot_codex_folder: String,
}

/// A legacy managed file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LegacyManagedConfigTomlFromFileConfigLayerSource {
    /// Absolute path of the file.
    pub file: String,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextPosition {
    /// Column, counted from 1 in Unicode scalar values.
    pub column: u64,
    /// Line number, counted from 1.
    pub line: u64,
}
