//! The MCP servers of a manifest: `[contributions.mcp_servers.NAME]`.

use raddle_config::McpServer;
use toml::Table;

use super::KeyFault;
use crate::mcp::plugin_server_name;

/// Limit: MCP servers of one plugin; beyond it, the plugin is rejected.
const SERVERS_MAX: usize = 8;

/// Limit: name of a plugin's MCP server; beyond it, the plugin is rejected.
const NAME_BYTES_MAX: usize = 64;

const KEY: &str = "contributions.mcp_servers";

/// Takes the MCP servers out of the contributions of the plugin with this id.
pub(super) fn take(contributions: &mut Table, id: &str) -> Result<Vec<McpServer>, KeyFault> {
    let example = "[contributions.mcp_servers.files]";
    let wrong = || KeyFault::wrong(KEY, "a table of tables", example);
    let sections = match contributions.remove("mcp_servers") {
        None => return Ok(Vec::new()),
        Some(toml::Value::Table(sections)) => sections,
        Some(_) => return Err(wrong()),
    };
    if sections.len() > SERVERS_MAX {
        let problem = format!("has more than {SERVERS_MAX} servers");
        return Err(KeyFault::new(KEY, problem, "join some of them"));
    }
    let servers = sections.into_iter().map(|(name, section)| {
        let toml::Value::Table(section) = section else {
            return Err(wrong());
        };
        if !is_server_name(&name) {
            let problem = format!("has the name `{name}`");
            let remedy = "use 1 to 64 letters, digits and -";
            return Err(KeyFault::new(KEY, problem, remedy));
        }
        let server = McpServer::of_plugin(&plugin_server_name(id, &name), section);
        server.map_err(|problem| {
            let key = format!("{KEY}.{name}");
            KeyFault::new(&key, "cannot be used", problem.text)
        })
    });
    servers.collect()
}

fn is_server_name(text: &str) -> bool {
    let is_valid = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_valid)
}
