//! Sidecar plugins: processes that speak JSON-RPC 2.0 with the host on their stdin and stdout.
//!
//! A plugin is a folder with a [`Manifest`] and a program. A `PluginSession` carries the calls of
//! both sides, in any order and inside each other. [`test_plugin`] checks a folder against the
//! contract, which docs/plugins.md describes.

mod byte_stream;
mod conformance;
mod folder_hash;
mod frame;
mod inspection;
mod launch;
mod manifest;
mod session;
mod trust;

pub use conformance::{ContractViolation, PluginTest, PluginTestOptions, TestStep, test_plugin};
pub use folder_hash::{FolderError, FolderHash};
pub use inspection::{InspectedPlugin, InspectionError};
pub use manifest::{MANIFEST_FILE, Manifest, ManifestError, PluginMethod};
pub use trust::{PluginTrust, UntrustedReason, plugin_trust};
