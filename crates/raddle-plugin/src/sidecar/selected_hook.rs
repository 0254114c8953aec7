//! A hook of a plugin that runs on an event.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ThreadId;
use serde_json::Value;

use super::events::EventReceiver;
use super::instance::{PluginCall, PluginInstance, PluginToolError};
use super::manifest::MANIFEST_FILE;

/// A method of a plugin that is called on an event.
pub(crate) struct SelectedHook {
    pub(super) instance: Arc<PluginInstance>,
    pub(super) method: String,
    /// Thread of the event.
    pub(super) thread: ThreadId,
    /// Folders that the agent may write.
    pub(super) writable: Vec<PathBuf>,
}

impl SelectedHook {
    /// Returns a name for the log.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.instance.plugin.manifest.id, self.method)
    }

    /// Returns the file that defines it.
    pub(crate) fn manifest_path(&self) -> PathBuf {
        self.instance.plugin.folder.join(MANIFEST_FILE)
    }

    /// Calls the method with the input of a hook.
    pub(crate) async fn call(
        self,
        input: Value,
        limit: Duration,
    ) -> Result<Value, PluginToolError> {
        let call = PluginCall {
            method: self.method,
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
        self.instance.call(call).await
    }
}
