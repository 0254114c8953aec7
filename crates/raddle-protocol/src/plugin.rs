//! Installed plugins, and the catalogue of apps. Raddle has no apps; the list exists so that clients
//! which read it at their start work unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

/// Params of `app/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppsListParams {
    /// The thread whose configuration determines the enabled apps; null uses the server's
    /// configuration.
    pub thread_id: Option<ThreadId>,
    /// Cursor from `nextCursor` of the previous page; null returns the first page.
    pub cursor: Option<String>,
    /// Reads the sources again instead of using cached results. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub force_refetch: bool,
    /// Maximum number of entries on the page; null leaves it to the server.
    pub limit: Option<u32>,
}

/// Result of `app/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppsListResponse {
    /// One page of apps.
    pub data: Vec<Value>,
    /// Cursor for the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Params of `plugin/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginListParams {
    /// Directories whose repositories may have marketplaces; null lists those of the user.
    pub cwds: Option<Vec<String>>,
    /// Reads the sources again instead of using cached results. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub force_refetch: bool,
    /// Kinds of marketplaces to list; null leaves it to the server.
    pub marketplace_kinds: Option<Vec<PluginListMarketplaceKind>>,
}

/// Result of `plugin/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginListResponse {
    /// The marketplaces, each with its plugins.
    pub marketplaces: Vec<PluginMarketplaceEntry>,
    /// Ids of plugins to show first.
    #[serde(default, deserialize_with = "null_as_default")]
    pub featured_plugin_ids: Vec<String>,
    /// Marketplaces that could not be read.
    #[serde(default, deserialize_with = "null_as_default")]
    pub marketplace_load_errors: Vec<MarketplaceLoadErrorInfo>,
}

/// Params of `plugin/installed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstalledParams {
    /// Directories whose repositories may have marketplaces; null lists those of the user.
    pub cwds: Option<Vec<String>>,
    /// Names of plugins to list although they are not installed; null lists none of them.
    pub install_suggestion_plugin_names: Option<Vec<String>>,
}

/// Result of `plugin/installed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInstalledResponse {
    /// The marketplaces with installed plugins.
    pub marketplaces: Vec<PluginMarketplaceEntry>,
    /// Marketplaces that could not be read.
    #[serde(default, deserialize_with = "null_as_default")]
    pub marketplace_load_errors: Vec<MarketplaceLoadErrorInfo>,
}

/// Params of `plugin/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginReadParams {
    /// Name of the plugin in its marketplace.
    pub plugin_name: String,
    /// Path of the marketplace; null if it has none.
    pub marketplace_path: Option<String>,
    /// Name of a marketplace of the vendor; null for one on this machine.
    pub remote_marketplace_name: Option<String>,
}

/// Result of `plugin/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginReadResponse {
    /// The plugin.
    pub plugin: PluginDetail,
}

/// Params of `plugin/uninstall`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginUninstallParams {
    /// Id of the plugin.
    pub plugin_id: String,
}

/// Result of `plugin/uninstall`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginUninstallResponse {}

/// Params of `plugin/call`, which requires the extension `raddle/plugins`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCallParams {
    /// Id of the plugin.
    pub plugin_id: String,
    /// Method that the manifest of the plugin declares.
    pub method: String,
    /// Params of the method, an object; null is an empty one.
    pub params: Option<Value>,
    /// Thread whose rules apply, and whose agent must not be able to change the plugin; null for
    /// none.
    pub thread_id: Option<ThreadId>,
}

/// Result of `plugin/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCallResponse {
    /// Result of the method.
    pub result: Value,
}

/// `plugin/event`: a plugin sent a notification during a call. Sent to the subscribers of the thread
/// whose turn made the call, or to the client that made it with `plugin/call`, if they enabled
/// `raddle/plugins`. It is not a record: it has no `seq` and is not replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginEventNotification {
    /// Id of the plugin.
    pub plugin_id: String,
    /// Thread of the call; null if the client named none.
    pub thread_id: Option<ThreadId>,
    /// Method of the plugin's notification.
    pub method: String,
    /// Params of the plugin's notification. The plugin alone vouches for them.
    pub params: Value,
    /// Number of events of this plugin that were dropped since the last one that was sent; absent
    /// if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

/// A list of plugins. Raddle has one: the plugins of its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginMarketplaceEntry {
    /// Name of the marketplace.
    pub name: String,
    /// How clients show the marketplace; null if it has no texts for that.
    pub interface: Option<MarketplaceInterface>,
    /// File that defines the marketplace; null if it is not on this machine.
    pub path: Option<String>,
    /// Plugins of the marketplace.
    pub plugins: Vec<PluginSummary>,
}

/// How clients show a marketplace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketplaceInterface {
    /// Name for people; null if there is none.
    pub display_name: Option<String>,
}

/// A plugin in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSummary {
    /// Id of the plugin.
    pub id: String,
    /// Name of the plugin in its marketplace.
    pub name: String,
    /// Whether threads use the plugin.
    pub enabled: bool,
    /// Whether the plugin is installed.
    pub installed: bool,
    /// When the plugin signs in at a service.
    pub auth_policy: PluginAuthPolicy,
    /// Whether clients may install the plugin, or remove it.
    pub install_policy: PluginInstallPolicy,
    /// Origin of the plugin's files.
    pub source: PluginSource,
    /// Whether the plugin may be used. Absent means that it may.
    #[serde(default, deserialize_with = "null_as_default")]
    pub availability: PluginAvailability,
    /// Reason why the vendor disabled the plugin; null if it did not.
    pub disabled_reason: Option<PluginDisabledReason>,
    /// Subscriptions with which the vendor offers the plugin; null if there is no such rule.
    pub eligible_plan_types: Option<Vec<String>>,
    /// Origin of the install policy; null if unknown.
    pub install_policy_source: Option<PluginInstallPolicySource>,
    /// Time of the installation in seconds since 1970; null if unknown.
    pub installed_at: Option<i64>,
    /// How clients show the plugin; null if there are no texts for that.
    pub interface: Option<PluginInterface>,
    /// Words by which a search finds the plugin.
    #[serde(default, deserialize_with = "null_as_default")]
    pub keywords: Vec<String>,
    /// Version of the files on this machine; null if unknown.
    pub local_version: Option<String>,
    /// Whether clients must show a page before they install the plugin; null if unknown.
    pub must_show_installation_interstitial: Option<bool>,
    /// Id of the plugin at the vendor; null if it has none.
    pub remote_plugin_id: Option<String>,
    /// How the plugin is shared at the vendor; null if it is not.
    pub share_context: Option<Value>,
    /// Version of the plugin; null if unknown.
    pub version: Option<String>,
}

/// Texts and images with which clients show a plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginInterface {
    /// Colour of the plugin's brand; null if there is none.
    pub brand_color: Option<String>,
    /// Abilities of the plugin. Raddle lists the permissions that the plugin may ask for.
    pub capabilities: Vec<String>,
    /// Category in the marketplace; null if there is none.
    pub category: Option<String>,
    /// Path of an icon for the composer; null if there is none.
    pub composer_icon: Option<String>,
    /// URL of an icon for the composer; null if there is none.
    pub composer_icon_url: Option<String>,
    /// Prompts to begin with; null if there are none.
    pub default_prompt: Option<Vec<String>>,
    /// Name of the developer; null if unknown.
    pub developer_name: Option<String>,
    /// Name for people; null if there is none.
    pub display_name: Option<String>,
    /// Path of a logo; null if there is none.
    pub logo: Option<String>,
    /// Path of a logo for dark backgrounds; null if there is none.
    pub logo_dark: Option<String>,
    /// URL of a logo; null if there is none.
    pub logo_url: Option<String>,
    /// URL of a logo for dark backgrounds; null if there is none.
    pub logo_url_dark: Option<String>,
    /// Description of several lines; null if there is none.
    pub long_description: Option<String>,
    /// URL of the privacy policy; null if there is none.
    pub privacy_policy_url: Option<String>,
    /// URLs of screenshots.
    pub screenshot_urls: Vec<String>,
    /// Paths of screenshots.
    pub screenshots: Vec<String>,
    /// Description of one line; null if there is none.
    pub short_description: Option<String>,
    /// URL of the terms of service; null if there are none.
    pub terms_of_service_url: Option<String>,
    /// URL of the plugin's page; null if there is none.
    pub website_url: Option<String>,
}

/// A plugin with all its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginDetail {
    /// The plugin as in a list.
    pub summary: PluginSummary,
    /// Description; null if there is none. Raddle names the tools of the plugin and its
    /// permissions, or the reason why it does not run.
    pub description: Option<String>,
    /// Name of the marketplace.
    pub marketplace_name: String,
    /// File that defines the marketplace; null if it is not on this machine.
    pub marketplace_path: Option<String>,
    /// Apps of the plugin.
    pub apps: Vec<Value>,
    /// Templates of apps.
    pub app_templates: Vec<Value>,
    /// Hooks of the plugin.
    pub hooks: Vec<PluginHookSummary>,
    /// Names of MCP servers that the plugin defines.
    pub mcp_servers: Vec<String>,
    /// Skill that introduces the plugin; null if there is none.
    pub onboarding_skill: Option<Value>,
    /// Tasks of the plugin that run at fixed times; null if unknown.
    pub scheduled_tasks: Option<Vec<Value>>,
    /// URL under which the plugin is shared; null if it is not.
    pub share_url: Option<String>,
    /// Skills of the plugin.
    pub skills: Vec<SkillSummary>,
}

/// A hook of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginHookSummary {
    /// Event that triggers the hook.
    pub event_name: HookEventName,
    /// Key of the hook, as in `hooks/list`.
    pub key: String,
}

/// A skill of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillSummary {
    /// Name by which the user mentions the skill.
    pub name: String,
    /// Purpose of the skill and when to use it.
    pub description: String,
    /// Whether the skill is enabled.
    pub enabled: bool,
    /// Display data of the skill; null if it declares none.
    pub interface: Option<SkillInterface>,
    /// Absolute path of its `SKILL.md` file; null if it is not on this machine.
    pub path: Option<String>,
    /// Short description; null if there is none.
    pub short_description: Option<String>,
}

tagged! {
    /// Origin of a plugin's files.
    pub enum PluginSource by "type" {
        /// A folder on this machine.
        Local(LocalPluginSource) = "local",
        /// A Git repository.
        Git(GitPluginSource) = "git",
        /// A package of npm.
        Npm(NpmPluginSource) = "npm",
        /// The vendor's catalogue.
        Remote = "remote",
    }
}

/// A folder on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalPluginSource {
    /// Path of the folder.
    pub path: String,
}

/// A Git repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitPluginSource {
    /// URL of the repository.
    pub url: String,
    /// Folder in the repository; null for its root.
    pub path: Option<String>,
    /// Branch or tag; null for the default branch.
    pub ref_name: Option<String>,
    /// Commit; null if none is fixed.
    pub sha: Option<String>,
}

/// A package of npm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NpmPluginSource {
    /// Name of the package.
    pub package: String,
    /// URL of the registry; null for the default one.
    pub registry: Option<String>,
    /// Version or range of versions; null for any.
    pub version: Option<String>,
}

/// A marketplace that could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketplaceLoadErrorInfo {
    /// Path of the marketplace.
    pub marketplace_path: String,
    /// Description of the problem.
    pub message: String,
}

open_enum! {
    /// Kind of a marketplace.
    pub enum PluginListMarketplaceKind {
        /// A marketplace on this machine.
        Local = "local",
        /// A marketplace of the vendor for one trade.
        Vertical = "vertical",
        /// The marketplace of a workspace at the vendor.
        WorkspaceDirectory = "workspace-directory",
        /// Plugins that other users share with this one.
        SharedWithMe = "shared-with-me",
        /// Plugins that the user has made at the vendor.
        CreatedByMeRemote = "created-by-me-remote",
    }
}

open_enum! {
    /// When a plugin signs in at a service.
    pub enum PluginAuthPolicy {
        /// When it is installed.
        OnInstall = "ON_INSTALL",
        /// When it is used.
        OnUse = "ON_USE",
    }
}

open_enum! {
    /// Whether clients may install a plugin, or remove it.
    pub enum PluginInstallPolicy {
        /// Clients may not install it.
        NotAvailable = "NOT_AVAILABLE",
        /// Clients may install and remove it.
        Available = "AVAILABLE",
        /// The administrator installed it, and clients may not remove it.
        InstalledByDefault = "INSTALLED_BY_DEFAULT",
    }
}

open_enum! {
    /// Origin of an install policy.
    pub enum PluginInstallPolicySource {
        /// A setting of the workspace at the vendor.
        WorkspaceSetting = "WORKSPACE_SETTING",
        /// The vendor's own app.
        ImplicitCanonicalApp = "IMPLICIT_CANONICAL_APP",
    }
}

open_enum! {
    /// Whether a plugin may be used.
    pub enum PluginAvailability or Available {
        /// An administrator disabled it.
        DisabledByAdmin = "DISABLED_BY_ADMIN",
        /// It may be used.
        Available = "AVAILABLE",
    }
}

open_enum! {
    /// Reason why a vendor disabled a plugin.
    pub enum PluginDisabledReason {
        /// An administrator disabled it.
        DisabledByAdmin = "disabled_by_admin",
        /// The subscription does not include it.
        PlanNotEligible = "plan_not_eligible",
        /// It needs an app that is not available.
        RequiredAppUnavailable = "required_app_unavailable",
        /// Another reason.
        Unknown = "unknown",
    }
}
