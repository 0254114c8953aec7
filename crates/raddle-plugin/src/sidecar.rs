//! Sidecar plugins: processes that speak JSON-RPC 2.0 with the host on their stdin and stdout.
//!
//! A plugin is a folder with a [`Manifest`] and a program. A `PluginSession` carries the calls of
//! both sides, in any order and inside each other. [`test_plugin`] checks a folder against the
//! contract, which docs/plugins.md describes.

mod byte_stream;
mod conformance;
mod frame;
mod launch;
mod manifest;
mod session;

pub use conformance::{ContractViolation, PluginTest, PluginTestOptions, TestStep, test_plugin};
pub use manifest::{MANIFEST_FILE, Manifest, ManifestError, PluginMethod};
