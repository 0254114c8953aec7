//! The command line of `raddle mcp-server`.

use clap::Args;

use super::SettingArgs;

#[derive(Debug, Args)]
pub(crate) struct McpServer {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}
