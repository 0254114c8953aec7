//! The plugins of the configuration: a `[plugins."ID"]` each, with the folder of the plugin and the
//! hash of the files that the user trusts.
//!
//! Files of a workspace are no layer, so they install no plugins. Codex has a table of this name
//! too: its entries have no `path`, and are left out.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::Config;

/// The table of plugins.
pub(crate) const PLUGINS_TABLE: &str = "plugins";

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
