//! The plugins of the configuration, for the command line.

use serde_json::{Value, json};

use super::{Configuration, WrittenValue, replacement};
use crate::config_error::ConfigWriteError;
use crate::plugins::{self, InstalledPlugin, path_of};
use crate::{hooks, keys, layers};

impl Configuration {
    /// Returns the installed plugins, in the order of their ids.
    pub fn plugins(&self) -> Vec<InstalledPlugin> {
        let state = self.config.state();
        plugins::read(&state.layers, &state.merged)
    }

    /// Returns the origin of a plugin: a file or `-c`.
    pub fn plugin_origin(&self, id: &str) -> Option<String> {
        let path = path_of(id);
        layers::get(&self.config.state().merged, &path)?;
        Some(self.origin(&path))
    }

    /// Explains that only the administrator's file changes a plugin; `None` if the administrator did
    /// not install it.
    pub fn managed_plugin_refusal(&self, id: &str) -> Option<String> {
        plugins::managed_refusal(&self.config.state().layers, id)
    }

    /// Whether the user's file defines a part of a plugin that the administrator did not install.
    pub fn is_users_plugin(&self, id: &str) -> bool {
        plugins::is_users(&self.config.state(), id)
    }

    /// Writes a plugin to the user's file. Decisions about the hooks of an earlier plugin with this
    /// id are removed.
    pub fn install_plugin(
        &self,
        plugin: &InstalledPlugin,
    ) -> Result<WrittenValue, ConfigWriteError> {
        let section = json!({
            "path": plugin.path.to_string_lossy(),
            "enabled": plugin.enabled,
            "trusted_hash": plugin.trusted_hash,
        });
        self.write_plugin(&plugin.id, section)
    }

    /// Enables or disables a plugin in the user's file.
    pub fn enable_plugin(
        &self,
        id: &str,
        is_enabled: bool,
    ) -> Result<WrittenValue, ConfigWriteError> {
        self.write_plugin_key(id, "enabled", is_enabled.into())
    }

    /// Stores in the user's file that the files of a plugin with this hash are trusted.
    pub fn trust_plugin(&self, id: &str, hash: &str) -> Result<WrittenValue, ConfigWriteError> {
        self.write_plugin_key(id, "trusted_hash", hash.into())
    }

    /// Removes a plugin from the user's file, with the decisions about its hooks.
    pub fn remove_plugin(&self, id: &str) -> Result<WrittenValue, ConfigWriteError> {
        self.write_plugin(id, Value::Null)
    }

    /// Writes the entry of a plugin, and removes the decisions about its hooks, at once.
    fn write_plugin(&self, id: &str, entry: Value) -> Result<WrittenValue, ConfigWriteError> {
        let path = path_of(id);
        let mut edits = hooks::forget_plugin(&self.config.state(), id);
        edits.push(replacement(&keys::dotted(&path), entry));
        self.write_edits(&path, &edits)
    }

    fn write_plugin_key(
        &self,
        id: &str,
        key: &str,
        value: Value,
    ) -> Result<WrittenValue, ConfigWriteError> {
        let [table, id] = path_of(id);
        self.write(&keys::dotted(&[table, id, key.to_owned()]), value)
    }
}
