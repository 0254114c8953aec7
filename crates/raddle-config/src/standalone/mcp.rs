//! The MCP servers of the configuration, for the command line.

use raddle_protocol::ConfigLayerSource;

use super::{Configuration, WrittenValue};
use crate::config_error::ConfigWriteError;
use crate::mcp_servers::{self, MCP_TABLE, McpServers};
use crate::redaction::without_secrets;
use crate::{keys, layers};

impl Configuration {
    /// Returns the MCP servers. Values that may be secrets are redacted, so the result is for
    /// people only.
    pub fn mcp_servers(&self) -> McpServers {
        mcp_servers::read(&without_secrets(&self.config.state().merged))
    }

    /// Returns the origin of an MCP server, usable or not: a file or `-c`.
    pub fn mcp_server_origin(&self, name: &str) -> Option<String> {
        let path = path_of(name);
        layers::get(&self.config.state().merged, &path)?;
        Some(self.origin(&path))
    }

    /// Whether the user's file defines a part of an MCP server.
    pub fn is_users_mcp_server(&self, name: &str) -> bool {
        let state = self.config.state();
        let mut all = state.layers.each();
        let user = all.find(|it| matches!(it.source, ConfigLayerSource::User(_)));
        user.is_some_and(|it| layers::get(&it.table, &path_of(name)).is_some())
    }

    /// Writes an MCP server to the user's file, in the place of an earlier one with this name. The
    /// section has the keys of the file. Comments and order of all others stay.
    pub fn set_mcp_server(
        &self,
        name: &str,
        section: serde_json::Value,
    ) -> Result<WrittenValue, ConfigWriteError> {
        let checked = layers::from_json(&section).map(|it| mcp_servers::check(name, &it));
        if let Some(Err(problem)) = checked {
            return Err(ConfigWriteError::Rejected {
                kind: "configValidationError",
                message: problem.to_string(),
            });
        }
        self.write(&keys::dotted(&path_of(name)), section)
    }

    /// Removes an MCP server from the user's file.
    pub fn remove_mcp_server(&self, name: &str) -> Result<WrittenValue, ConfigWriteError> {
        self.unset(&keys::dotted(&path_of(name)))
    }
}

fn path_of(name: &str) -> [String; 2] {
    [MCP_TABLE.to_owned(), name.to_owned()]
}
