//! Sidecar plugins: processes that speak JSON-RPC 2.0 with the host on their stdin and stdout.
//!
//! A plugin is a folder with a [`Manifest`] and a program. A `PluginSession` carries the calls of
//! both sides, in any order and inside each other. [`test_plugin`] checks a folder against the
//! contract, which docs/plugins-reference.md describes.
//!
//! The [`PluginRegistry`] knows the installed plugins whose files are trusted. Each is a
//! `PluginInstance`, which runs the process when a call needs it. [`PluginTools`] offers their tools
//! to the model.

mod answer_channel;
mod byte_stream;
mod catalogue;
mod conformance;
mod events;
mod folder_hash;
mod frame;
mod host;
mod inspection;
mod instance;
mod launch;
mod manifest;
mod model_provider;
mod network;
mod open_calls;
mod permission_store;
mod plugin_file;
mod registry;
mod selected_hook;
mod session;
mod skills;
mod stopped_calls;
mod tool_name;
mod tools;
mod trust;

pub use catalogue::forget_plugin;
pub use conformance::{ContractViolation, PluginTest, PluginTestOptions, TestStep, test_plugin};
pub use folder_hash::{FolderError, FolderHash};
pub use inspection::{InspectedPlugin, InspectionError, McpCollision};
pub use manifest::{MANIFEST_FILE, Manifest, ManifestError, PluginMethod, PluginTool};
pub use model_provider::PluginModels;
pub use permission_store::{PermissionApproval, PermissionStore};
pub use plugin_file::PluginFileError;
pub use registry::{PluginRegistry, plugin_log};
pub(crate) use selected_hook::{HOOK_TIMEOUT, SelectedHook};
pub use skills::PluginSkillError;
pub use tools::PluginTools;
pub use trust::{PluginTrust, UntrustedReason, plugin_trust};
