//! The command line of `raddle mcp`, with the words of Codex.

use clap::{ArgGroup, Args, Subcommand};

use super::SettingArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add an MCP server to your config.toml, or replace it
    ///
    /// For a program: `raddle mcp add NAME --env KEY=VALUE -- COMMAND ARGUMENTS`. For an address:
    /// `raddle mcp add NAME --url URL`. Replaces all settings of a server with this name, and keeps
    /// the rest of the file. docs/config.md lists further settings, for `raddle config set`.
    Add(McpAdd),
    /// List the MCP servers
    List(McpList),
    /// Print the settings of an MCP server
    Get(McpGet),
    /// Remove an MCP server from your config.toml
    Remove(McpRemove),
    /// Start MCP servers as a thread in this folder would, and print what they offer
    ///
    /// Without a name, tests all servers that are enabled. The exit status is 1 if a server cannot
    /// be used; its cause and a remedy are printed.
    Test(McpTest),
    /// Log in at an MCP server with a URL, through its page in your browser
    Login(McpLogin),
    /// Remove the stored login at an MCP server
    Logout(McpLogout),
}

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("transport").args(["url", "command"]).required(true)),
    override_usage = "raddle mcp add [OPTIONS] <NAME> (--url <URL> | -- <COMMAND>...)"
)]
pub(crate) struct McpAdd {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Name of the server: letters, digits and _-.:@/
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Variable to set for the program; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = variable, conflicts_with = "url")]
    pub(crate) env: Vec<McpVariable>,

    /// Working directory of the program
    ///
    /// Relative to the folder of the thread. Without it, the program starts in that folder only if
    /// the folder is trusted.
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) cwd: Option<String>,

    /// Address of a streamable HTTP server
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,

    /// Environment variable that holds the bearer token of the address
    #[arg(long, value_name = "VARIABLE", conflicts_with = "command")]
    pub(crate) bearer_token_env_var: Option<String>,

    /// Id of an OAuth client that you registered for the address
    #[arg(long, value_name = "CLIENT_ID", conflicts_with = "command")]
    pub(crate) oauth_client_id: Option<String>,

    /// Secret of that client; it is stored in config.toml
    #[arg(long, value_name = "CLIENT_SECRET", requires = "oauth_client_id")]
    pub(crate) oauth_client_secret: Option<String>,

    /// OAuth resource to request tokens for
    #[arg(long, value_name = "RESOURCE", conflicts_with = "command")]
    pub(crate) oauth_resource: Option<String>,

    /// Program and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// A variable to set for a program.
#[derive(Clone, Debug)]
pub(crate) struct McpVariable {
    pub(crate) name: String,
    pub(crate) value: String,
}

#[derive(Debug, Args)]
pub(crate) struct McpList {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Print a JSON list
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpGet {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpRemove {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct McpTest {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Name of the server; without it, all
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print one JSON object, or a list without a name
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct McpLogin {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,

    /// Scopes to request, separated by commas; without them, those that the server asks for
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpLogout {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// Name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

fn variable(text: &str) -> Result<McpVariable, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok(McpVariable {
            name: name.trim().to_owned(),
            value: value.to_owned(),
        }),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
