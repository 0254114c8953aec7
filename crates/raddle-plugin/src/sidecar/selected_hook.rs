//! A hook of a plugin that runs on an event.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ThreadId;
use serde_json::Value;

use super::events::EventReceiver;
use super::instance::{PluginCall, PluginInstance, PluginToolError};
use super::manifest::{MANIFEST_FILE, PluginHook};

/// A method of a plugin that is called on an event.
pub(crate) struct SelectedHook {
    /// Id of the plugin.
    pub(super) plugin: String,
    /// Folder of the plugin.
    pub(super) folder: PathBuf,
    /// The plugin, or why it does not run any more.
    pub(super) instance: Result<Arc<PluginInstance>, String>,
    pub(super) hook: PluginHook,
    /// Thread of the event.
    pub(super) thread: ThreadId,
    /// Folders that the agent may write.
    pub(super) writable: Vec<PathBuf>,
}

impl SelectedHook {
    /// Returns a name for the log.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.plugin, self.hook.method)
    }

    /// Returns the file that defines it.
    pub(crate) fn manifest_path(&self) -> PathBuf {
        self.folder.join(MANIFEST_FILE)
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
