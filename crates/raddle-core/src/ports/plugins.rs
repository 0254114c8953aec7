//! Sidecar plugins, as clients see them.

use std::fmt;
use std::time::Duration;

use raddle_protocol::{Notification, PluginEventNotification};
use serde_json::Value;

use super::{BoxFuture, HookEvent, NotApproved};
use crate::{AskElicitation, Settings, ThreadId};

/// The plugins of the configuration.
pub trait Plugins: fmt::Debug + Send + Sync {
    /// Returns the installed plugins as their folders are now, in the order of ids. It starts none.
    fn snapshots(&self) -> BoxFuture<'_, Vec<PluginSnapshot>>;

    /// Reads the configuration again. Plugins that may no longer run are stopped.
    fn reload(&self) -> BoxFuture<'_, ()>;

    /// Removes the approvals and the state of a plugin that is no longer installed. A failure is
    /// logged: the files have no effect until a plugin with this id is installed.
    fn forget<'a>(&'a self, plugin: &'a str) -> BoxFuture<'a, ()>;

    /// Stores the approval of a permission by this principal, who answered the question after the
    /// call of the plugin had ended.
    fn approve<'a>(
        &'a self,
        ask: &'a AskElicitation,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), NotApproved>>;

    /// Returns the skills of all plugins that are enabled and trusted, as their files are now.
    /// Blocks on the disk.
    fn skills(&self) -> Vec<PluginSkill>;

    /// Reads the file of a skill; `None` if it is none of an enabled plugin whose files are the
    /// trusted ones. Blocks on the disk.
    fn skill_text(&self, path: &str) -> Option<String>;

    /// Returns all names by which rules can restrain a method of a plugin: those of the tools that
    /// use it, and one of its own.
    fn rule_names<'a>(&'a self, plugin: &'a str, method: &'a str) -> BoxFuture<'a, Vec<String>>;

    /// Calls a method on behalf of a client, outside any turn. The plugin is started if it does not
    /// run.
    fn call(&self, call: PluginRequest) -> BoxFuture<'_, Result<Value, PluginRequestError>>;
}

/// A call of a plugin's method by a client.
pub struct PluginRequest {
    /// Id of the plugin.
    pub plugin: String,
    /// Method that the manifest declares.
    pub method: String,
    /// Params of the method: an object. Null and none are an empty one.
    pub params: Option<Value>,
    /// The thread that the client names.
    pub thread: Option<ThreadId>,
    /// Settings of that thread.
    pub settings: Option<Settings>,
    /// Number of the client's connection.
    pub connection: u64,
    /// Receives the events of the plugin during the call.
    pub events: PluginEventListener,
}

/// Receives the events of a plugin during a call, without waiting. Returns false if an event is not
/// delivered.
pub type PluginEventListener = Box<dyn Fn(PluginEvent) -> bool + Send + Sync>;

/// A notification of a plugin for clients. It is not stored.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginEvent {
    /// Id of the plugin.
    pub plugin: String,
    /// Method of the plugin's notification.
    pub method: String,
    /// Params of the plugin's notification.
    pub params: Value,
    /// Number of events that were dropped since the last one that was delivered.
    pub dropped: u64,
}

impl PluginEvent {
    /// Returns the notification of clients. The plugin determines neither its method nor its thread.
    pub fn notification(self, thread: Option<ThreadId>) -> Notification {
        let notification = PluginEventNotification {
            plugin_id: self.plugin,
            thread_id: thread,
            method: self.method,
            params: self.params,
            dropped: (self.dropped > 0).then_some(self.dropped),
        };
        notification.into()
    }
}

/// Reason why a call of a plugin's method by a client failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PluginRequestError {
    /// The configuration has no such plugin, or disables it.
    #[error("no enabled plugin has the id `{0}`; plugin/list shows those that exist")]
    UnknownPlugin(String),
    /// The plugin does not run.
    #[error("the plugin `{plugin}` does not run: {reason}")]
    NotRunning {
        /// Id of the plugin.
        plugin: String,
        /// Reason for that.
        reason: String,
    },
    /// The manifest does not declare the method.
    #[error(
        "the manifest of `{plugin}` declares no method `{method}`; name one of \
         `contributions.methods`, or the method of a tool"
    )]
    UnknownMethod {
        /// Id of the plugin.
        plugin: String,
        /// Name of the method.
        method: String,
    },
    /// The params are no object.
    #[error("the params of a plugin's method must be a JSON object")]
    BadParams,
    /// The plugin returned an error, or no result.
    #[error("the call of the plugin `{plugin}` failed: {error}")]
    Failed {
        /// Id of the plugin.
        plugin: String,
        /// Error of the plugin.
        error: String,
    },
}

/// State of an installed plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSnapshot {
    /// Id of the plugin in the configuration.
    pub id: String,
    /// Path of its folder.
    pub folder: String,
    /// Whether the configuration enables it.
    pub is_enabled: bool,
    /// Hash of the files that the user trusts.
    pub trusted_hash: Option<String>,
    /// Whether the user's own file defines it, so that the user can remove it.
    pub is_removable: bool,
    /// Whether the administrator installed it, so that the user changes nothing of it.
    pub is_managed: bool,
    /// Whether it does not run, and hooks that it had before fail.
    pub has_failing_hooks: bool,
    /// Its manifest, or why it does not run.
    pub manifest: Result<ManifestSummary, String>,
}

/// The parts of a plugin's manifest that clients see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestSummary {
    /// Version of the plugin.
    pub version: String,
    /// Permissions that the plugin may ask for.
    pub permissions: Vec<String>,
    /// Names of the tools that it offers to the model, as the manifest has them.
    pub tools: Vec<String>,
    /// Skills in its folder.
    pub skills: Vec<PluginSkill>,
    /// Names of the MCP servers that it defines, as threads know them.
    pub mcp_servers: Vec<String>,
    /// Its hooks, in the order of the manifest.
    pub hooks: Vec<PluginHookSummary>,
}

/// A hook of a plugin, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginHookSummary {
    /// Key under which the user's configuration may disable it: plugin, event and method.
    pub key: String,
    /// Event on which it runs.
    pub event: HookEvent,
    /// Selection of events, as written; `None` selects all.
    pub matcher: Option<String>,
    /// Method of the plugin that is called.
    pub method: String,
    /// Path of the manifest.
    pub manifest_path: String,
    /// Deadline of a run.
    pub timeout: Duration,
}

/// A skill of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSkill {
    /// Id of the plugin.
    pub plugin: String,
    /// Name by which the user mentions the skill; it begins with the id of the plugin.
    pub name: String,
    /// Purpose of the skill, and when to use it.
    pub description: String,
    /// Absolute path of its file.
    pub path: String,
}

/// No plugins.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPlugins;

impl Plugins for NoPlugins {
    fn snapshots(&self) -> BoxFuture<'_, Vec<PluginSnapshot>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn reload(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn forget<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn approve<'a>(
        &'a self,
        _: &'a AskElicitation,
        _: &'a str,
    ) -> BoxFuture<'a, Result<(), NotApproved>> {
        let error = NotApproved("there are no plugins".to_owned());
        Box::pin(std::future::ready(Err(error)))
    }

    fn skills(&self) -> Vec<PluginSkill> {
        Vec::new()
    }

    fn skill_text(&self, _: &str) -> Option<String> {
        None
    }

    fn rule_names<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn call(&self, call: PluginRequest) -> BoxFuture<'_, Result<Value, PluginRequestError>> {
        let error = PluginRequestError::UnknownPlugin(call.plugin);
        Box::pin(std::future::ready(Err(error)))
    }
}
