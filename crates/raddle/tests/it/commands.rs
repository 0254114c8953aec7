//! Commands of clients, through the real binary: `command/exec` and its keeper.

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

/// A request to run a script without a sandbox and for as long as it likes, with more params.
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

/// The next answer, whatever is told before it.
fn answer(client: &mut Websocket) -> Value {
    loop {
        let message = client.receive();
        if message.get("id").is_some() {
            return message;
        }
    }
}
