pub mod config_lock;
pub mod http;
pub mod server;
pub mod stdio;
pub mod terminal;
pub mod websocket;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The timeout of every wait in a test. Only a failing test waits this long.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// Polls until there is a value; fails at the timeout.
pub fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A request as a frame.
pub fn request(id: impl Into<Value>, method: &str, params: Value) -> Vec<u8> {
    let id = id.into();
    json!({ "id": id, "method": method, "params": params })
        .to_string()
        .into_bytes()
}

/// The first message of every client.
pub fn initialize(id: impl Into<Value>) -> Vec<u8> {
    request(
        id,
        "initialize",
        json!({ "clientInfo": { "name": "it", "version": "0" } }),
    )
}

/// The code of an error response; `None` for a result.
pub fn code(answer: &Value) -> Option<i64> {
    assert!(
        answer.get("result").is_some() != answer.get("error").is_some(),
        "an answer has a result or an error: {answer}"
    );
    answer.get("error").map(|error| {
        assert!(error["message"].is_string(), "an error says why: {answer}");
        error["code"].as_i64().expect("an integer code")
    })
}
