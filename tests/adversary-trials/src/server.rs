//! A server process that is driven over stdio.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use support::StdioServer;

/// Starts the server with this command, and initializes the connection.
pub fn start(command: Command, log: &Path) -> Result<StdioServer> {
    let mut server = StdioServer::start(command, log)?;
    server.call("initialize", &initialize_params())?;
    server.send(&json!({"method": "initialized"}))?;
    Ok(server)
}

/// Returns the parameters of `initialize`, which are the same for every client.
pub fn initialize_params() -> Value {
    let client_info = json!({"name": "adversary", "version": env!("CARGO_PKG_VERSION")});
    json!({"clientInfo": client_info, "capabilities": {"experimentalApi": true}})
}
