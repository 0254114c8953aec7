//! A hook of a plugin that runs on an event.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_config::HookSet;
use raddle_core::ThreadId;
use serde_json::Value;

use super::events::EventReceiver;
use super::instance::{PluginCall, PluginInstance, PluginToolError};
use super::manifest::PluginHook;

/// Limit: time of a hook of a plugin; beyond it, the hook has failed.
pub(crate) const HOOK_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the key under which the user's configuration may disable a hook.
pub(super) fn hook_key(plugin: &str, hook: &PluginHook, position: usize) -> String {
    format!("{plugin}:{}:{position}", hook.event.key())
}

/// A method of a plugin that is called on an event.
pub(crate) struct SelectedHook {
    /// Id of the plugin.
    pub(super) plugin: String,
    /// Path of the manifest that defines it.
    pub(super) manifest_path: PathBuf,
    /// Key under which the user's configuration may disable it.
    pub(super) key: String,
    /// Whether the administrator installed the plugin, so that the user cannot disable the hook.
    pub(super) is_managed: bool,
    /// Position among the hooks of all plugins.
    pub(super) position: usize,
    /// The plugin, or why it does not run any more.
    pub(super) instance: Result<Arc<PluginInstance>, String>,
    pub(super) hook: PluginHook,
    /// Thread of the event.
    pub(super) thread: ThreadId,
    /// Folders that the agent may write.
    pub(super) writable: Vec<PathBuf>,
}

impl SelectedHook {
    /// Returns a name for people.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.plugin, self.hook.method)
    }

    /// Whether the user disabled it.
    pub(crate) fn is_disabled(&self, set: &HookSet) -> bool {
        !self.is_managed && set.is_disabled(&self.key)
    }

    /// Returns its position among the hooks of all plugins.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Returns the file that defines it.
    pub(crate) fn manifest_path(&self) -> &Path {
        &self.manifest_path
    }

    /// Whether a failure blocks what the hook decides on.
    pub(crate) fn blocks_on_failure(&self) -> bool {
        self.hook.blocks_on_failure
    }

    /// Calls the method with the input of a hook.
    pub(crate) async fn call(
        self,
        input: Value,
        limit: Duration,
    ) -> Result<Value, PluginToolError> {
        let instance = self.instance.map_err(PluginToolError::NotLoaded)?;
        let call = PluginCall {
            method: self.hook.method,
            arguments: input,
            user: None,
            acts: None,
            limit,
            answer: None,
            events: EventReceiver::without_clients(self.thread),
            // Dropping the future abandons the call.
            stopped: Box::pin(std::future::pending()),
            writable: self.writable,
        };
        instance.call(call).await
    }
}
