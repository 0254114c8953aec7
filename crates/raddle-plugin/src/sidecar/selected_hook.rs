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

/// Returns the keys under which the user's configuration may disable hooks of a plugin, in the order
/// of these hooks. A key has no position: a hook that the author inserts must not take over the
/// decision about another one.
pub(super) fn hook_keys(plugin: &str, hooks: &[PluginHook]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for hook in hooks {
        let first = format!("{plugin}:{}:{}", hook.event.key(), hook.method);
        let further = (2..).map(|number| format!("{first}:{number}"));
        let mut free = std::iter::once(first.clone()).chain(further);
        let key = free.find(|it| !keys.contains(it));
        keys.push(key.unwrap_or(first));
    }
    keys
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecar::manifest::Manifest;

    #[test]
    fn an_inserted_hook_leaves_the_keys_of_others() {
        let keys = |hooks: &[(&str, &str)]| {
            let folder = tempfile::tempdir().expect("a folder");
            let head = "id = 'org.example'\nversion = '1'\nentrypoint = ['x']\n";
            let hooks = hooks.iter().map(|(event, method)| {
                format!("[[contributions.hooks]]\nevent = '{event}'\nmethod = '{method}'\n")
            });
            let manifest = format!("{head}{}", hooks.collect::<String>());
            std::fs::write(folder.path().join("plugin.toml"), manifest).expect("a manifest");
            let manifest = Manifest::read(folder.path()).expect("a plugin");
            hook_keys(&manifest.id, &manifest.hooks).join(" ")
        };
        let check = ("PreToolUse", "check");
        assert_eq!(keys(&[check]), "org.example:pre_tool_use:check");
        assert_eq!(
            keys(&[("Stop", "check"), ("PreToolUse", "other"), check]),
            "org.example:stop:check org.example:pre_tool_use:other org.example:pre_tool_use:check"
        );
        // Hooks with other matchers, and a method that looks like the key of another one.
        assert_eq!(
            keys(&[check, check, ("PreToolUse", "check:2"), check]),
            "org.example:pre_tool_use:check org.example:pre_tool_use:check:2 \
             org.example:pre_tool_use:check:2:2 org.example:pre_tool_use:check:3"
        );
    }
}
