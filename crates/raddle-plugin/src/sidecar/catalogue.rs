//! The installed plugins, as clients see them.

use std::fmt;

use raddle_config::InstalledPlugin;
use raddle_core::ports::{BoxFuture, ManifestSummary, PluginSnapshot, Plugins};

use super::inspection::InspectionError;
use super::manifest::Manifest;
use super::registry::PluginRegistry;
use super::trust::UntrustedReason;

impl fmt::Debug for PluginRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginRegistry")
    }
}

impl Plugins for PluginRegistry {
    fn snapshots(&self) -> BoxFuture<'_, Vec<PluginSnapshot>> {
        Box::pin(async move {
            if !self.refresh().await && self.config().is_known_empty() {
                return Vec::new();
            }
            let this = self.clone();
            let snapshots = tokio::task::spawn_blocking(move || {
                let installed = this.config().refresh().into_iter();
                installed.map(|it| this.snapshot(it)).collect()
            });
            snapshots.await.unwrap_or_default()
        })
    }

    fn reload(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.refresh().await;
        })
    }
}

impl PluginRegistry {
    /// Returns the state of a plugin. It may block on the disk.
    fn snapshot(&self, installed: InstalledPlugin) -> PluginSnapshot {
        let manifest = match self.enabled(&installed) {
            Some(Ok(plugin)) => Ok(summary(&plugin.instance.plugin.manifest)),
            Some(Err(reason)) => Err(reason),
            None => unloaded(&installed),
        };
        PluginSnapshot {
            is_removable: self.config().is_users(&installed.id),
            folder: installed.path.display().to_string(),
            is_enabled: installed.enabled,
            id: installed.id,
            manifest,
        }
    }
}

/// Reads the manifest of a plugin that does not run. Its files need no trust for that.
fn unloaded(installed: &InstalledPlugin) -> Result<ManifestSummary, String> {
    let (id, path) = (installed.id.clone(), installed.path.clone());
    if path.is_relative() {
        return Err(InspectionError::Relative { path }.to_string());
    }
    let manifest = Manifest::read(&path).map_err(|error| error.to_string())?;
    if manifest.id != id {
        let found = manifest.id;
        return Err(UntrustedReason::OtherId { id, found }.to_string());
    }
    Ok(summary(&manifest))
}

fn summary(manifest: &Manifest) -> ManifestSummary {
    ManifestSummary {
        version: manifest.version.clone(),
        permissions: manifest.permissions.clone(),
        tools: manifest.tools.iter().map(|it| it.name.clone()).collect(),
    }
}
