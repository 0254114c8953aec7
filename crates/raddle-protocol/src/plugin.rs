//! Catalogues of apps and plugins. Raddle has neither; the lists exist so that clients which read
//! them at their start work unchanged.

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
    pub marketplaces: Vec<Value>,
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
    pub marketplaces: Vec<Value>,
    /// Marketplaces that could not be read.
    #[serde(default, deserialize_with = "null_as_default")]
    pub marketplace_load_errors: Vec<MarketplaceLoadErrorInfo>,
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
