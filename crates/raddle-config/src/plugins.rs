//! The plugins of the configuration: a `[plugins."ID"]` each, with the folder of the plugin and the
//! hash of the files that the user trusts.
//!
//! Files of a workspace are no layer, so they install no plugins. Codex has a table of this name
//! too: its entries have no `path`, and are left out. The entry of a plugin that the administrator
//! installed comes from the administrator's file alone.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_protocol::{ConfigEdit, ConfigLayerSource, MergeStrategy};
use serde_json::Value;

use crate::config::{Config, ConfigWriter, State};
use crate::config_error::ConfigWriteError;
use crate::hooks;
use crate::keys::{self, PLUGINS_TABLE};
use crate::layers::{self, Layers};
use crate::managed_plugins::{is_managed, managed_refusal, managed_table, path_of};

/// Limit: installed plugins; beyond it, the others do not run, in the order of their ids. Those of the
/// administrator come first.
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
    /// Whether the administrator installed it, so that no other file changes it.
    pub is_managed: bool,
}

/// Reads the plugins, in the order of their ids. `merged` is the merge of the layers.
pub(crate) fn read(layers: &Layers, merged: &toml::Table) -> Vec<InstalledPlugin> {
    let managed = managed_table(layers).into_iter().flat_map(entries);
    let mut plugins: Vec<InstalledPlugin> = managed.filter_map(|it| plugin(it, true)).collect();
    let others = merged.get(PLUGINS_TABLE).into_iter().flat_map(entries);
    let others = others.filter(|(id, _)| !is_managed(layers, id));
    plugins.extend(others.filter_map(|it| plugin(it, false)));
    plugins.sort_by(|a, b| (!a.is_managed, &a.id).cmp(&(!b.is_managed, &b.id)));
    plugins.truncate(PLUGINS_MAX);
    plugins.sort_by(|first, second| first.id.cmp(&second.id));
    plugins
}

fn entries(table: &toml::Value) -> impl Iterator<Item = (&String, &toml::Value)> {
    table.as_table().into_iter().flat_map(toml::Table::iter)
}

fn plugin((id, entry): (&String, &toml::Value), is_managed: bool) -> Option<InstalledPlugin> {
    let text = |key: &str| entry.get(key).and_then(toml::Value::as_str);
    Some(InstalledPlugin {
        id: id.clone(),
        path: text("path")?.into(),
        // An invalid value must not enable it.
        enabled: entry
            .get("enabled")
            .is_none_or(|it| it.as_bool() == Some(true)),
        trusted_hash: text("trusted_hash").map(str::to_owned),
        is_managed,
    })
}

/// Whether the user's file defines a part of a plugin that the administrator did not install.
pub(crate) fn is_users(state: &State, id: &str) -> bool {
    if is_managed(&state.layers, id) {
        return false;
    }
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
        let state = state.unwrap_or_else(|_| self.config.state());
        read(&state.layers, &state.merged)
    }

    /// Returns the names of the MCP servers of the configuration, as last loaded. No server of a
    /// plugin may have one of them.
    pub fn mcp_server_names(&self) -> Vec<String> {
        self.config.state().mcp_servers.names()
    }

    /// Whether the user's file, as last loaded, defines a part of a plugin that the administrator did
    /// not install.
    pub fn is_users(&self, id: &str) -> bool {
        is_users(&self.config.state(), id)
    }

    /// Removes a plugin from the user's file. Blocks on the disk.
    pub fn uninstall(&self, id: &str, writer: ConfigWriter) -> Result<(), ConfigWriteError> {
        let rejected = |kind, message| ConfigWriteError::Rejected { kind, message };
        let state = self.config.refresh().map_err(ConfigWriteError::Unusable)?;
        let plugins = read(&state.layers, &state.merged);
        if !plugins.iter().any(|it| it.id == id) {
            let message = format!("no plugin has the id `{id}`; use an id of plugin/list");
            return Err(rejected("configValidationError", message));
        }
        if let Some(message) = managed_refusal(&state.layers, id) {
            return Err(rejected("configLayerReadonly", message));
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
    use raddle_protocol::{ConfigLayerSource, SystemConfigLayerSource, UserConfigLayerSource};

    use super::*;
    use crate::layers::Layer;

    /// Returns the layers with these texts: of the administrator, of the user, and of `-c`.
    fn layers(system: &str, user: &str, flags: &str) -> Layers {
        let layer = |source, text: &str| Layer {
            source,
            version: String::new(),
            table: text.parse().expect("TOML"),
        };
        let file = |name: &str| name.to_owned();
        Layers::new(vec![
            layer(
                ConfigLayerSource::System(SystemConfigLayerSource {
                    file: file("system.toml"),
                }),
                system,
            ),
            layer(
                ConfigLayerSource::User(UserConfigLayerSource {
                    file: file("config.toml"),
                    profile: None,
                }),
                user,
            ),
            layer(ConfigLayerSource::SessionFlags, flags),
        ])
    }

    fn read_layers(layers: &Layers) -> Vec<InstalledPlugin> {
        read(layers, &layers.merged())
    }

    fn plugin(id: &str, path: &str, enabled: bool, hash: Option<&str>) -> InstalledPlugin {
        InstalledPlugin {
            id: id.to_owned(),
            path: path.into(),
            enabled,
            trusted_hash: hash.map(str::to_owned),
            is_managed: false,
        }
    }

    #[test]
    fn entries_with_a_path_are_plugins() {
        let table = "[plugins.'org.b']\npath = '/b'\nenabled = 'yes'\n\
                     [plugins.'org.a']\npath = '/a'\ntrusted_hash = 'sha256:0'\n\
                     [plugins.'mail@market']\nenabled = true\n";
        let expected = [
            plugin("org.a", "/a", true, Some("sha256:0")),
            plugin("org.b", "/b", false, None),
        ];
        assert_eq!(read_layers(&layers("", table, "")), expected);
        assert_eq!(read_layers(&layers("", "", "")), []);
    }

    #[test]
    fn no_other_file_changes_a_plugin_of_the_administrator() {
        let system = "[plugins.'org.a']\npath = '/a'\ntrusted_hash = 'sha256:0'\n\
                      [plugins.'org.b']\nenabled = true\n";
        let managed = InstalledPlugin {
            is_managed: true,
            ..plugin("org.a", "/a", true, Some("sha256:0"))
        };
        for other in [
            "",
            "plugins = 5",
            "[plugins]\n'org.a' = 5",
            "[plugins.'org.a']\npath = '/x'",
            "[plugins.'org.a']\nenabled = false",
            "[plugins.'org.a']\ntrusted_hash = 'sha256:1'",
        ] {
            for all in [layers(system, other, ""), layers(system, "", other)] {
                assert_eq!(read_layers(&all), std::slice::from_ref(&managed), "{other}");
            }
        }
        // Only an entry with a path installs a plugin.
        let all = layers(system, "[plugins.'org.b']\npath = '/b'", "");
        let expected = [managed.clone(), plugin("org.b", "/b", true, None)];
        assert_eq!(read_layers(&all), expected);
        let refusal = managed_refusal(&all, "org.a").expect("a refusal");
        assert!(
            refusal.contains("only system.toml can change it"),
            "{refusal}"
        );
        assert_eq!(managed_refusal(&all, "org.b"), None);
        // The user's plugins do not displace it.
        let many = (0..2 * PLUGINS_MAX).map(|it| format!("[plugins.'a{it}']\npath = '/'\n"));
        let all = read_layers(&layers(system, &many.collect::<String>(), ""));
        assert_eq!(all.len(), PLUGINS_MAX);
        assert_eq!(all.last(), Some(&managed));
    }
}
