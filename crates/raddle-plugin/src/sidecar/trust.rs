//! Trust in an installed plugin: whether its files are those that the user trusted.

use raddle_config::InstalledPlugin;

use super::inspection::{InspectedPlugin, InspectionError};

/// Trust in an installed plugin, as its folder is now.
#[derive(Debug)]
pub enum PluginTrust {
    /// The user trusts its files as they are.
    Trusted(Box<InspectedPlugin>),
    /// The user does not trust its files as they are.
    Untrusted(UntrustedReason),
    /// Its folder cannot be used.
    Unusable(InspectionError),
}

/// Reason why a plugin is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedReason {
    /// The user never trusted it.
    #[error("it is not trusted; read what it does, and run `raddle plugin trust {id}`")]
    Never {
        /// Id of the plugin.
        id: String,
    },
    /// Its files have changed.
    #[error(
        "its files have changed since they were trusted; read what it does, and run `raddle plugin \
         trust {id}`"
    )]
    Modified {
        /// Id of the plugin.
        id: String,
    },
    /// The administrator installed it, and trusts other files or none.
    #[error(
        "the administrator installed it, and does not trust its files as they are now: that needs \
         `trusted_hash = \"{hash}\"` in the file of the administrator"
    )]
    Managed {
        /// Hash of its files.
        hash: String,
    },
    /// The manifest has another id than the configuration.
    #[error(
        "its manifest has the id `{found}` now; run `raddle plugin remove {id}`, and add the \
         folder again"
    )]
    OtherId {
        /// Id in the configuration.
        id: String,
        /// Id in the manifest.
        found: String,
    },
}

/// Reads the folder of an installed plugin, and compares its files with the trusted ones. It may
/// block on the disk.
pub fn plugin_trust(installed: &InstalledPlugin) -> PluginTrust {
    let (id, path) = (installed.id.clone(), installed.path.clone());
    if path.is_relative() {
        return PluginTrust::Unusable(InspectionError::Relative { path });
    }
    let plugin = match InspectedPlugin::read(&path) {
        Ok(plugin) => plugin,
        Err(error) => return PluginTrust::Unusable(error),
    };
    if plugin.manifest.id != id {
        let found = plugin.manifest.id;
        return PluginTrust::Untrusted(UntrustedReason::OtherId { id, found });
    }
    match &installed.trusted_hash {
        Some(hash) if *hash == plugin.hash.text => PluginTrust::Trusted(Box::new(plugin)),
        _ if installed.is_managed => PluginTrust::Untrusted(UntrustedReason::Managed {
            hash: plugin.hash.text,
        }),
        None => PluginTrust::Untrusted(UntrustedReason::Never { id }),
        Some(_) => PluginTrust::Untrusted(UntrustedReason::Modified { id }),
    }
}
