//! The MCP servers that plugins define, with some of the keys of `[mcp_servers.NAME]`.

use std::path::PathBuf;

use toml::{Table, Value};

use super::{McpProblem, McpServer, section};

/// Keys that a plugin may use. The others concern the user's secrets, the network or the sandbox,
/// or approve calls.
const KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "enabled_tools",
    "disabled_tools",
];

/// The plugin that defines an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpPlugin {
    /// Id of the plugin.
    pub id: String,
    /// Real path of its folder, in which the server runs.
    pub folder: PathBuf,
    /// Stamp of the trusted files. A server of other files is another one.
    pub stamp: [u8; 32],
}

impl McpServer {
    /// Reads the section of a plugin's MCP server with this name. It has no network, and no plugin
    /// yet.
    pub fn of_plugin(name: &str, section: Table) -> Result<Self, McpProblem> {
        let refused = section.keys().find(|it| !KEYS.contains(&it.as_str()));
        if let Some(key) = refused {
            let keys = KEYS.join("`, `");
            return Err(McpProblem {
                name: name.to_owned(),
                text: format!(
                    "a plugin cannot set `{key}`; remove it, and use only `{keys}`, with a program \
                     of the plugin as `command`"
                ),
                required: false,
            });
        }
        Ok(Self {
            network: false,
            ..section::check(name, &Value::Table(section))?
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::McpTransport;

    fn read(section: &str) -> Result<McpServer, String> {
        let table = section.parse().expect("TOML");
        McpServer::of_plugin("org_x_files", table).map_err(|error| error.text)
    }

    #[test]
    fn a_server_of_a_plugin_has_no_network() {
        let server =
            read("command = './serve'\nargs = ['-v']\nenv = { A = 'b' }\ntool_timeout_sec = 7")
                .expect("a server");
        assert!(!server.network && server.sandbox && server.enabled && !server.required);
        assert_eq!(server.tool_timeout, Duration::from_secs(7));
        let McpTransport::Stdio { command, args, .. } = &server.transport else {
            panic!("{server:?}");
        };
        assert_eq!(
            (command.as_str(), args.as_slice()),
            ("./serve", &["-v".to_owned()][..])
        );
    }

    #[test]
    fn keys_of_the_user_are_refused() {
        for key in [
            "url = 'https://example.org'",
            "env_vars = ['TOKEN']",
            "cwd = '/'",
            "network = true",
            "sandbox = false",
            "required = true",
            "enabled = false",
            "default_tools_approval_mode = 'approve'",
            "tools = { a = { approval_mode = 'approve' } }",
            "colour = 1",
        ] {
            let error = read(&format!("command = 'x'\n{key}")).expect_err(key);
            let name = key.split(' ').next().expect("a key");
            assert!(
                error.starts_with(&format!("a plugin cannot set `{name}`; ")),
                "{error}"
            );
        }
        let error = read("args = []").expect_err("no command");
        assert!(
            error.starts_with("it has neither `command` nor `url`"),
            "{error}"
        );
        let error = read("command = 5").expect_err("a number");
        assert!(error.contains("command"), "{error}");
    }
}
