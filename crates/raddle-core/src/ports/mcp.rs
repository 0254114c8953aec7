//! MCP servers, as clients see them.

use std::fmt;

use serde_json::Value;

use super::BoxFuture;
use crate::Settings;

/// The MCP servers of the configuration.
pub trait McpServers: fmt::Debug + Send + Sync {
    /// Returns the state of each server for threads with these settings, in the order of names.
    /// It starts enabled servers that do not run, and waits a limited time for those that start.
    /// Without settings, any running instance of a server counts.
    fn snapshots<'a>(
        &'a self,
        settings: Option<&'a Settings>,
    ) -> BoxFuture<'a, Vec<McpServerSnapshot>>;

    /// Returns the state of the servers that run for threads with one of these settings, in the
    /// order of names. It starts none.
    fn running<'a>(&'a self, threads: &'a [Settings]) -> BoxFuture<'a, Vec<McpServerSnapshot>>;

    /// Returns all names that rules may use for a tool of a server.
    fn rule_names(&self, server: &str, tool: &str) -> Vec<String>;

    /// Passes every later change of a server's state to this listener. The first listener counts.
    fn subscribe(&self, listener: McpListener);

    /// Reads the configuration again. Servers whose configuration changed are stopped.
    fn reload(&self) -> BoxFuture<'_, ()>;

    /// Reads a resource of a server, and returns the contents in MCP's form.
    fn read_resource<'a>(
        &'a self,
        settings: Option<&'a Settings>,
        server: &'a str,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, McpError>>;

    /// Starts a login at a server, with these scopes, or with those that the server asks for.
    fn log_in<'a>(
        &'a self,
        server: &'a str,
        scopes: Vec<String>,
    ) -> BoxFuture<'a, Result<McpLogin, McpError>>;

    /// Calls a tool on behalf of a client, outside any turn, and returns the result in MCP's form.
    fn call_tool<'a>(
        &'a self,
        settings: &'a Settings,
        server: &'a str,
        tool: &'a str,
        arguments: Option<Value>,
    ) -> BoxFuture<'a, Result<Value, McpError>>;
}

/// Receives changes of the state of servers: the name of the server, and its new state.
pub type McpListener = Box<dyn Fn(&str, &McpServerState) + Send + Sync>;

/// State of an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServerSnapshot {
    /// Name of the server in the configuration.
    pub name: String,
    /// Id of the plugin that defines it; `None` if it is one of the operator.
    pub plugin: Option<String>,
    /// State of the connection.
    pub state: McpServerState,
    /// Name and version, as the server reports them.
    pub info: Option<Value>,
    /// Tools by the server's own names, in MCP's form.
    pub tools: Vec<(String, Value)>,
    /// Resources, in MCP's form.
    pub resources: Vec<Value>,
    /// Templates of resources, in MCP's form.
    pub resource_templates: Vec<Value>,
    /// State of the login.
    pub auth: McpAuth,
}

/// State of the login at an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpAuth {
    /// The server needs no login.
    Unsupported,
    /// A token of the configuration is used.
    BearerToken,
    /// The server requires a login, and there is none.
    NotLoggedIn,
    /// The user is logged in.
    LoggedIn,
}

/// A login at an MCP server that has started.
pub struct McpLogin {
    /// Page to open in a browser on this machine.
    pub page: String,
    /// Ends when the login has succeeded or failed. Dropping it cancels the login.
    pub end: BoxFuture<'static, Result<(), McpError>>,
}

/// State of the connection to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpServerState {
    /// The configuration disables it.
    Disabled,
    /// It is being started.
    Starting,
    /// It is connected.
    Ready,
    /// It failed with this error.
    Failed(String),
}

/// Reason why a request to an MCP server failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The configuration has no such server, or disables it.
    #[error("there is no enabled MCP server named `{0}`; `raddle mcp list` shows those that exist")]
    UnknownServer(String),
    /// The server has no such tool, or the configuration disables it.
    #[error("the MCP server `{server}` has no enabled tool named `{tool}`")]
    UnknownTool {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
    },
    /// The server is not connected.
    #[error("the MCP server `{server}` is not connected: {error}")]
    NotConnected {
        /// Name of the server.
        server: String,
        /// Reason for that.
        error: String,
    },
    /// The server is a program, and needs no login.
    #[error("the MCP server `{0}` has no url, so there is nothing to log in to")]
    NoLogin(String),
    /// The arguments are no object.
    #[error("the arguments of a tool must be a JSON object")]
    BadArguments,
    /// The server returned an error.
    #[error("{0}")]
    Failed(String),
}

/// No MCP servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMcpServers;

impl McpServers for NoMcpServers {
    fn snapshots<'a>(&'a self, _: Option<&'a Settings>) -> BoxFuture<'a, Vec<McpServerSnapshot>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn running<'a>(&'a self, _: &'a [Settings]) -> BoxFuture<'a, Vec<McpServerSnapshot>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn rule_names(&self, server: &str, tool: &str) -> Vec<String> {
        vec![format!("{server}.{tool}")]
    }

    fn subscribe(&self, _: McpListener) {}

    fn reload(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn read_resource<'a>(
        &'a self,
        _: Option<&'a Settings>,
        server: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Value>, McpError>> {
        let error = McpError::UnknownServer(server.to_owned());
        Box::pin(std::future::ready(Err(error)))
    }

    fn log_in<'a>(
        &'a self,
        server: &'a str,
        _: Vec<String>,
    ) -> BoxFuture<'a, Result<McpLogin, McpError>> {
        let error = McpError::UnknownServer(server.to_owned());
        Box::pin(std::future::ready(Err(error)))
    }

    fn call_tool<'a>(
        &'a self,
        _: &'a Settings,
        server: &'a str,
        _: &'a str,
        _: Option<Value>,
    ) -> BoxFuture<'a, Result<Value, McpError>> {
        let error = McpError::UnknownServer(server.to_owned());
        Box::pin(std::future::ready(Err(error)))
    }
}

impl McpServerSnapshot {
    /// Creates the snapshot of a server that is being started.
    pub fn empty(name: String) -> Self {
        Self {
            name,
            plugin: None,
            state: McpServerState::Starting,
            info: None,
            tools: Vec::new(),
            resources: Vec::new(),
            resource_templates: Vec::new(),
            auth: McpAuth::Unsupported,
        }
    }
}
