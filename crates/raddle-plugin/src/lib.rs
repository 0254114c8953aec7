//! Tools that other processes offer to the agent, hooks, and sidecar plugins.
//!
//! [`McpRegistry`] runs the MCP servers of the configuration: one supervised instance per
//! configuration, working folder and sandbox, shared by all threads of the process. [`McpTools`]
//! adds their tools to the built-in ones behind the same port, so the agent never learns where a
//! tool lives.
//!
//! No server holds up a turn: servers start in the background, the model is offered the tools of
//! those that are connected, and learns which are not.
//!
//! [`mcp_server`] is the other direction: threads as tools of an MCP server.
//!
//! [`PluginTools`] adds the tools of sidecar plugins, which [`PluginRegistry`] runs when they are
//! called. [`test_plugin`] starts a plugin and checks it against its contract.
//!
//! [`InstalledHooks`] runs the operator's commands and methods of plugins on events of threads, behind
//! the port for hooks.
//!
//! Below: the crate `rmcp` for the protocol, `raddle-sandbox` for the processes, and `raddle-rpc`
//! for the connection of the server mode. Above: the binary, which connects it to the agent.

mod backoff;
mod hooks;
mod log_budget;
mod log_file;
mod mcp;
pub mod mcp_server;
mod message_budget;
mod process;
mod read_pacer;
mod sidecar;
mod stderr_log;
mod vendor_name;

pub use hooks::InstalledHooks;
pub use mcp::{
    McpRegistry, McpTools, PluginServers, ServerFailure, ServerOffer, ServerTest, log_in, log_out,
};
pub use process::{NetworkAccess, Operator, ProcessStarter};
pub use sidecar::{
    ContractViolation, FolderError, FolderHash, InspectedPlugin, InspectionError, MANIFEST_FILE,
    Manifest, ManifestError, McpCollision, PermissionApproval, PermissionStore, PluginFileError,
    PluginMethod, PluginModels, PluginRegistry, PluginSkillError, PluginTest, PluginTestOptions,
    PluginTool, PluginTools, PluginTrust, TestStep, UntrustedReason, forget_plugin, plugin_log,
    plugin_trust, test_plugin,
};
