//! Sidecar plugins, as clients see them.

use std::fmt;

use super::BoxFuture;

/// The plugins of the configuration.
pub trait Plugins: fmt::Debug + Send + Sync {
    /// Returns the installed plugins as their folders are now, in the order of ids. It starts none.
    fn snapshots(&self) -> BoxFuture<'_, Vec<PluginSnapshot>>;

    /// Reads the configuration again. Plugins that may no longer run are stopped.
    fn reload(&self) -> BoxFuture<'_, ()>;
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
    /// Whether the user's own file defines it, so that the user can remove it.
    pub is_removable: bool,
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
}
