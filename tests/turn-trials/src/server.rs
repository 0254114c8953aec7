//! The server on stdio, driven by a client.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use support::{StdioServer, app_server};

/// Starts the server, and sends `initialize`. Its response is a message like any other.
pub fn start(raddle: &Path, home: &Path) -> Result<StdioServer> {
    let log = home.join("app-server.stderr");
    let mut server = StdioServer::start(app_server(raddle, home), &log)?;
    let me = json!({"name": "turn-trials", "version": env!("CARGO_PKG_VERSION")});
    server.send_request("initialize", &json!({"clientInfo": me}))?;
    Ok(server)
}
