//! Skills: folders of instructions an agent can take up, how they are found, listed and switched.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `skills/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsListParams {
    /// Directories to look up skills for. Empty means the server's own working directory.
    #[serde(default, deserialize_with = "null_as_default")]
    pub cwds: Vec<String>,
    /// Read the disk again rather than trust what was read before. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub force_reload: bool,
}

/// Result of `skills/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsListResponse {
    /// One entry per directory asked for.
    pub data: Vec<SkillsListEntry>,
}

/// Params of `skills/extraRoots/set`: folders to search besides the usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsExtraRootsSetParams {
    /// Absolute paths. They replace the earlier list; an empty list clears it.
    pub extra_roots: Vec<String>,
}

/// Result of `skills/extraRoots/set`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillsExtraRootsSetResponse {}

/// Params of `skills/config/write`: switch one skill on or off, picked by name or by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsConfigWriteParams {
    /// Whether it should be on.
    pub enabled: bool,
    /// Picks the skill by name; null when `path` picks it.
    pub name: Option<String>,
    /// Picks the skill by the absolute path of its file; null when `name` picks it.
    pub path: Option<String>,
}

/// Result of `skills/config/write`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsConfigWriteResponse {
    /// Whether the skill is on now, with every layer of the configuration counted.
    pub effective_enabled: bool,
}

/// `skills/changed`: skill files changed on disk.
/// It says only that; call `skills/list` to see what is there now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillsChangedNotification {}

/// The skills found for one directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillsListEntry {
    /// The directory.
    pub cwd: String,
    /// Skill files that could not be read.
    pub errors: Vec<SkillErrorInfo>,
    /// The skills, disabled ones included.
    pub skills: Vec<SkillMetadata>,
}

/// A skill file that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillErrorInfo {
    /// What is wrong with it.
    pub message: String,
    /// The file.
    pub path: String,
}

/// One skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillMetadata {
    /// What it is for and when to take it up; the model chooses by this.
    pub description: String,
    /// Whether it is on.
    pub enabled: bool,
    /// The name by which it is mentioned.
    pub name: String,
    /// Its `SKILL.md` file, as an absolute path.
    pub path: String,
    /// Where it was found.
    pub scope: SkillScope,
    /// What it needs to work; null if it says nothing.
    pub dependencies: Option<SkillDependencies>,
    /// How to show it; null if it says nothing.
    pub interface: Option<SkillInterface>,
    /// The plugin that brought it; null if none is known.
    pub plugin_id: Option<String>,
    /// A shorter description in the older place; `interface.shortDescription` goes before it.
    pub short_description: Option<String>,
}

open_enum! {
    /// Where a skill was found.
    pub enum SkillScope {
        /// Among the user's own.
        User = "user",
        /// In the repository.
        Repo = "repo",
        /// Among those that come with the server.
        System = "system",
        /// Among those an administrator installed.
        Admin = "admin",
    }
}

/// What a skill needs to work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillDependencies {
    /// Tools it relies on.
    pub tools: Vec<SkillToolDependency>,
}

/// How a client may show a skill. Every member is optional.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillInterface {
    /// A colour for its badge, as a CSS hex value.
    pub brand_color: Option<String>,
    /// Text to offer the user when they pick it.
    pub default_prompt: Option<String>,
    /// Its name for people to read.
    pub display_name: Option<String>,
    /// A large icon, as an absolute path on the server's machine.
    pub icon_large: Option<String>,
    /// A large icon on the web, from a plugin catalogue.
    pub icon_large_url: Option<String>,
    /// A small icon, as an absolute path on the server's machine.
    pub icon_small: Option<String>,
    /// A small icon on the web, from a plugin catalogue.
    pub icon_small_url: Option<String>,
    /// One line for lists.
    pub short_description: Option<String>,
}

/// One tool a skill relies on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillToolDependency {
    /// The kind of tool, such as `mcp`.
    pub r#type: String,
    /// Its name within that kind, such as an MCP server's name.
    pub value: String,
    /// How to launch it, for an MCP server on this machine.
    pub command: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// How an MCP server is reached, such as `stdio` or `streamable_http`.
    pub transport: Option<String>,
    /// Where it is, for an MCP server reached over HTTP.
    pub url: Option<String>,
}
