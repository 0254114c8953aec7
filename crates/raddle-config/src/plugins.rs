//! The plugins of the configuration: a `[plugins."ID"]` each, with the folder of the plugin and the
//! hash of the files that the user trusts.
//!
//! Files of a workspace are no layer, so they install no plugins. Codex has a table of this name
//! too: its entries have no `path`, and are left out.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_protocol::{ConfigEdit, ConfigLayerSource, MergeStrategy};
use serde_json::Value;

use crate::config::{Config, ConfigWriter, State};
use crate::config_error::ConfigWriteError;
use crate::keys::{self, PLUGINS_TABLE};
use crate::{hooks, layers};

/// Limit: installed plugins; beyond it, the others do not run, in the order of their ids.
const PLUGINS_MAX: usize = 100;

/// A plugin of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPlugin {
    /// Id, which its manifest must have too.
    pub id: String,
    /// Folder of the plugin.
    pub path: PathBuf,
    /// Whether threads use it.
    pub enabled: bool,
    /// Hash of the files that the user trusts.
    pub trusted_hash: Option<String>,
}

/// Reads the plugins, in the order of their ids.
pub(crate) fn read(merged: &toml::Table) -> Vec<InstalledPlugin> {
    let entries = merged.get(PLUGINS_TABLE).and_then(toml::Value::as_table);
    let entries = entries.into_iter().flat_map(toml::Table::iter);
    let plugins = entries.filter_map(|(id, entry)| {
        let text = |key: &str| entry.get(key).and_then(toml::Value::as_str);
        Some(InstalledPlugin {
            id: id.clone(),
            path: text("path")?.into(),
            // An invalid value must not enable it.
            enabled: entry
                .get("enabled")
                .is_none_or(|it| it.as_bool() == Some(true)),
            trusted_hash: text("trusted_hash").map(str::to_owned),
        })
    });
    let mut plugins: Vec<InstalledPlugin> = plugins.collect();
    plugins.sort_by(|first, second| first.id.cmp(&second.id));
    plugins.truncate(PLUGINS_MAX);
    plugins
}

/// Returns the keys of a plugin's entry.
pub(crate) fn path_of(id: &str) -> [String; 2] {
    [PLUGINS_TABLE.to_owned(), id.to_owned()]
}

/// Whether the user's file defines a part of a plugin.
pub(crate) fn is_users(state: &State, id: &str) -> bool {
    let mut all = state.layers.each();
    let user = all.find(|it| matches!(it.source, ConfigLayerSource::User(_)));
    user.is_some_and(|it| layers::get(&it.table, &path_of(id)).is_some())
}

/// The plugins of a running server's configuration, current at each call. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PluginConfig {
    config: Arc<Config>,
}

impl PluginConfig {
    /// Returns the part of a configuration that is about plugins.
    pub fn of(config: &Arc<Config>) -> Self {
        let config = config.clone();
        Self { config }
    }

    /// Rereads files that have changed, and returns all plugins. If a file has become unusable, the
    /// last configuration stays in force. Blocks on the disk.
    pub fn refresh(&self) -> Vec<InstalledPlugin> {
        let state = self.config.refresh();
        read(&state.unwrap_or_else(|_| self.config.state()).merged)
    }

    /// Returns the names of the MCP servers of the configuration, as last loaded. No server of a
    /// plugin may have one of them.
    pub fn mcp_server_names(&self) -> Vec<String> {
        self.config.state().mcp_servers.names()
    }

    /// Whether the user's file, as last loaded, defines a part of a plugin.
    pub fn is_users(&self, id: &str) -> bool {
        is_users(&self.config.state(), id)
    }

    /// Removes a plugin from the user's file. Blocks on the disk.
    pub fn uninstall(&self, id: &str, writer: ConfigWriter) -> Result<(), ConfigWriteError> {
        let rejected = |kind, message| ConfigWriteError::Rejected { kind, message };
        let state = self.config.refresh().map_err(ConfigWriteError::Unusable)?;
        if !read(&state.merged).iter().any(|it| it.id == id) {
            let message = format!("no plugin has the id `{id}`; use an id of plugin/list");
            return Err(rejected("configValidationError", message));
        }
        if !is_users(&state, id) {
            let winner = state.layers.winner(&path_of(id));
            let message = format!(
                "the plugin `{id}` is installed in {}, not in {}; remove it there",
                winner.map_or("another place", |(layer, _)| layer.describe()),
                self.config.user_file().display()
            );
            return Err(rejected("configLayerReadonly", message));
        }
        let edit = ConfigEdit {
            key_path: keys::dotted(&path_of(id)),
            value: Value::Null,
            merge_strategy: MergeStrategy::Replace,
        };
        let mut edits = hooks::forget_plugin(&state, id);
        edits.push(edit);
        self.config.write(&edits, None, None, writer).map(drop)
    }

    /// Whether it is known without waiting for the disk that no plugin is installed.
    pub fn is_known_empty(&self) -> bool {
        let state = self.config.without_blocking();
        state.is_some_and(|it| !it.merged.contains_key(PLUGINS_TABLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_with_a_path_are_plugins() {
        let table = "[plugins.'org.b']\npath = '/b'\nenabled = 'yes'\n\
                     [plugins.'org.a']\npath = '/a'\ntrusted_hash = 'sha256:0'\n\
                     [plugins.'mail@market']\nenabled = true\n";
        let table: toml::Table = table.parse().expect("TOML");
        let plugin = |id: &str, path: &str, enabled, hash: Option<&str>| InstalledPlugin {
            id: id.to_owned(),
            path: path.into(),
            enabled,
            trusted_hash: hash.map(str::to_owned),
        };
        let expected = [
            plugin("org.a", "/a", true, Some("sha256:0")),
            plugin("org.b", "/b", false, None),
        ];
        assert_eq!(read(&table), expected);
        assert_eq!(read(&toml::Table::new()), []);
    }
}
