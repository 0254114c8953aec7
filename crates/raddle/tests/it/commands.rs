//! Commands of clients, with the real binary: `command/exec` and its keeper.

mod flood;
mod leftovers;
mod managed;
mod measured;
mod sandbox;
mod secrets;
mod server_files;

use serde_json::{Value, json};

use crate::support::request;
use crate::support::websocket::Websocket;

/// Builds a request for a script without a sandbox or timeout, with more params.
fn exec(id: &str, script: &str, more: Value) -> Vec<u8> {
    let mut params = json!({
        "command": ["sh", "-c", script],
        "cwd": "/",
        "disableTimeout": true,
        "sandboxPolicy": { "type": "dangerFullAccess" },
    });
    for (name, value) in more.as_object().expect("an object") {
        params[name] = value.clone();
    }
    request(id, "command/exec", params)
}

/// Returns the next response. Skips notifications.
fn answer(client: &mut Websocket) -> Value {
    loop {
        let message = client.receive();
        if message.get("id").is_some() {
            return message;
        }
    }
}
