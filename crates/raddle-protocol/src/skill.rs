//! Skills: directories of instructions that an agent can use, and how they are listed and enabled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `skills/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsListParams {
    /// Directories whose skills to list. Empty means the server's own working directory.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cwds: Vec<String>,
    /// Reads the disk again instead of using cached results. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub force_reload: bool,
}

/// Result of `skills/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsListResponse {
    /// One entry per requested directory.
    pub data: Vec<SkillsListEntry>,
}

/// Params of `skills/extraRoots/set`, which sets directories to search in addition to the usual
/// ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsExtraRootsSetParams {
    /// Absolute paths. They replace the earlier list; an empty list clears it.
    pub extra_roots: Vec<String>,
}

/// Result of `skills/extraRoots/set`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillsExtraRootsSetResponse {}

/// Params of `skills/config/write`, which enables or disables one skill, selected by name or by
/// path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsConfigWriteParams {
    /// Whether to enable the skill.
    pub enabled: bool,
    /// Name of the skill; null when `path` selects it.
    pub name: Option<String>,
    /// Absolute path of the skill's file; null when `name` selects it.
    pub path: Option<String>,
}

/// Result of `skills/config/write`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsConfigWriteResponse {
    /// Whether the skill is enabled now, considering all configuration layers.
    pub effective_enabled: bool,
}

/// `skills/changed`: skill files changed on disk. It carries no details; call `skills/list` for the
/// current skills.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillsChangedNotification {}

/// The skills of one directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsListEntry {
    /// The directory of the skills.
    pub cwd: String,
    /// Skill files that could not be read.
    pub errors: Vec<SkillErrorInfo>,
    /// The skills, including disabled ones.
    pub skills: Vec<SkillMetadata>,
}

/// A skill file that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillErrorInfo {
    /// Description of the problem.
    pub message: String,
    /// Path of the skill file.
    pub path: String,
}

/// A skill and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillMetadata {
    /// Purpose of the skill and when to use it; the model selects skills by this text.
    pub description: String,
    /// Whether the skill is enabled.
    pub enabled: bool,
    /// Name by which the user mentions the skill.
    pub name: String,
    /// Absolute path of its `SKILL.md` file.
    pub path: String,
    /// Location of the skill.
    pub scope: SkillScope,
    /// Dependencies of the skill; null if it declares none.
    pub dependencies: Option<SkillDependencies>,
    /// Display data of the skill; null if it declares none.
    pub interface: Option<SkillInterface>,
    /// Plugin that provides the skill; null if unknown.
    pub plugin_id: Option<String>,
    /// Short description in its older place; `interface.shortDescription` takes precedence.
    pub short_description: Option<String>,
}

open_enum! {
    /// Location of a skill.
    pub enum SkillScope {
        /// The user's own skills.
        User = "user",
        /// The repository of the workspace.
        Repo = "repo",
        /// Skills that are part of the server.
        System = "system",
        /// Skills installed by an administrator.
        Admin = "admin",
    }
}

/// Dependencies of a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillDependencies {
    /// Tools that the skill needs.
    pub tools: Vec<SkillToolDependency>,
}

/// Display data of a skill. Every member is optional.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillInterface {
    /// Badge colour, as a CSS hex value.
    pub brand_color: Option<String>,
    /// Prompt to offer the user when they select the skill.
    pub default_prompt: Option<String>,
    /// Human-readable name.
    pub display_name: Option<String>,
    /// Absolute path of a large icon on the server's machine.
    pub icon_large: Option<String>,
    /// URL of a large icon, from a plugin catalogue.
    pub icon_large_url: Option<String>,
    /// Absolute path of a small icon on the server's machine.
    pub icon_small: Option<String>,
    /// URL of a small icon, from a plugin catalogue.
    pub icon_small_url: Option<String>,
    /// Description in one line, for lists.
    pub short_description: Option<String>,
}

/// A tool that a skill needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillToolDependency {
    /// The kind of tool, such as `mcp`.
    pub r#type: String,
    /// Name of the tool within its type, such as an MCP server's name.
    pub value: String,
    /// Command to launch a local MCP server.
    pub command: Option<String>,
    /// Purpose of the tool.
    pub description: Option<String>,
    /// Transport of an MCP server, such as `stdio` or `streamable_http`.
    pub transport: Option<String>,
    /// URL of an MCP server reached over HTTP.
    pub url: Option<String>,
}
