//! The MCP servers of a running server's configuration.

use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::config_error::ConfigError;
use crate::mcp_servers::McpServers;
use crate::projects;

/// The MCP servers of the configuration, current at each call. Cheap to clone; each call may block
/// on the disk. Only the operator's layers define servers: neither the `config` of a request nor a
/// file of a workspace does.
#[derive(Clone, Debug)]
pub struct McpConfig {
    config: Arc<Config>,
}

impl McpConfig {
    /// Returns the part of a configuration that is about MCP servers.
    pub fn of(config: &Arc<Config>) -> Self {
        let config = config.clone();
        Self { config }
    }

    /// Rereads files that have changed, and returns all servers. A server whose settings have not
    /// changed is equal to the earlier one.
    pub fn refresh(&self) -> Result<McpServers, ConfigError> {
        Ok(self.config.refresh()?.mcp_servers.clone())
    }

    /// Whether the operator trusts a folder. Blocks on the disk.
    pub fn is_trusted(&self, folder: &Path) -> bool {
        let state = self.config.refresh();
        let state = state.unwrap_or_else(|_| self.config.state());
        projects::trust(&state, &projects::folders(folder)) == Some(true)
    }

    /// Returns the servers as last loaded. Does not block.
    pub fn current(&self) -> McpServers {
        self.config.state().mcp_servers.clone()
    }
}
