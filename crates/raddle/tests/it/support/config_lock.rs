//! A request that takes exactly as long as the test wants: a write of the configuration while the
//! test holds its lock, as another server of the same home would.

use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use super::request;

/// While this exists, no write of the configuration completes.
pub struct ConfigWriteLock {
    _lock: File,
}

impl ConfigWriteLock {
    pub fn new(home: &Path) -> Self {
        let lock = File::create(home.join("config.toml.lock")).expect("a lock file");
        lock.lock().expect("nobody else writes yet");
        Self { _lock: lock }
    }

    /// The request that blocks.
    pub fn request(id: impl Into<Value>) -> Vec<u8> {
        let params = json!({ "keyPath": "slow", "value": true, "mergeStrategy": "replace" });
        request(id, "config/value/write", params)
    }

    /// Checks its response, after the lock was dropped.
    pub fn check(answer: &Value) {
        assert_eq!(answer["result"]["status"], "ok", "{answer}");
    }
}
