//! The MCP servers of the configuration: a `[mcp_servers.NAME]` each, with the keys of Codex.

mod oauth;
mod plugin_section;
mod section;

pub(crate) use self::oauth::ineffective_login_keys;
pub use self::oauth::{McpCallback, McpClientAuth, McpOauth};
pub use self::plugin_section::McpPlugin;
pub(crate) use self::section::{check, ineffective_keys, read, structural_problems};

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The table of MCP servers.
pub(crate) const MCP_TABLE: &str = "mcp_servers";

/// An MCP server of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpServer {
    /// Its name: letters, digits and `_-:@/.`, as in Codex. It is neither a file name nor the name
    /// of a tool.
    pub name: String,
    /// How to reach it.
    pub transport: McpTransport,
    /// Whether threads use it.
    pub enabled: bool,
    /// Whether turns fail while it is not connected.
    pub required: bool,
    /// Timeout of its start, until it has listed its tools.
    pub startup_timeout: Duration,
    /// Timeout of a call of one of its tools.
    pub tool_timeout: Duration,
    /// The tools to offer, by name; none for all.
    pub enabled_tools: Option<Vec<String>>,
    /// The tools not to offer, by name, even if `enabled_tools` lists them.
    pub disabled_tools: Vec<String>,
    /// When to ask the user before a tool is called.
    pub approval: McpApproval,
    /// The same for single tools, by name.
    pub tool_approvals: BTreeMap<String, McpApproval>,
    /// Whether its process may use the network.
    pub network: bool,
    /// Whether its process runs in the sandbox.
    pub sandbox: bool,
    /// Settings of logins at it.
    pub oauth: McpOauth,
    /// The plugin that defines it; `None` for a server of the configuration.
    pub plugin: Option<McpPlugin>,
}

/// When to ask the user before a tool of an MCP server is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum McpApproval {
    /// As the policy decides.
    #[default]
    Auto,
    /// Before each call.
    Prompt,
    /// The operator has approved all calls.
    Approve,
}

/// How to reach an MCP server.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum McpTransport {
    /// A process, over its stdin and stdout.
    Stdio {
        /// The program: its name, or its path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables to set for it. The values may be secrets.
        env: BTreeMap<String, String>,
        /// Names of variables that it gets from the server's environment.
        env_vars: Vec<String>,
        /// Its working directory, as configured; it may be relative.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address, with `http` or `https`. It may contain a secret.
        url: String,
        /// The environment variable that holds its bearer token.
        bearer_token_env_var: Option<String>,
        /// Headers of every request. The values may be secrets.
        headers: BTreeMap<String, String>,
        /// Headers of every request, by the environment variables that hold the values.
        env_headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for McpTransport {
    /// Leaves out values that may be secrets, because debug output reaches logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio {
                command,
                env,
                env_vars,
                cwd,
                ..
            } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("env", &env.keys())
                .field("env_vars", env_vars)
                .field("cwd", cwd)
                .finish_non_exhaustive(),
            Self::Http {
                bearer_token_env_var,
                headers,
                env_headers,
                ..
            } => f
                .debug_struct("Http")
                .field("bearer_token_env_var", bearer_token_env_var)
                .field("headers", &headers.keys())
                .field("env_headers", env_headers)
                .finish_non_exhaustive(),
        }
    }
}

/// The MCP servers of the configuration, and the problems of those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpServers {
    /// The usable servers, sorted by name, also those that are not enabled.
    pub servers: Vec<Arc<McpServer>>,
    /// One problem of each server that is left out, sorted by name.
    pub problems: Vec<McpProblem>,
}

impl McpServers {
    /// Returns the names of all servers, also of those that are left out.
    pub fn names(&self) -> Vec<String> {
        let servers = self.servers.iter().map(|it| it.name.clone());
        let left_out = self.problems.iter().map(|it| it.name.clone());
        servers.chain(left_out).collect()
    }
}

/// Reason why an MCP server of the configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{name}` cannot be used: {text}")]
pub struct McpProblem {
    /// Name of the server.
    pub name: String,
    /// The reason, for people. Contains no values.
    pub text: String,
    /// Whether turns fail without the server: its section has `required = true`, and it is enabled.
    pub required: bool,
}
