//! `host/log`: a line in the log of the plugin.

use raddle_rpc::ErrorObject;
use serde_json::{Value, json};

use super::{PluginHost, invalid_params};

/// Levels of a line.
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

/// Longest message of a line.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

impl PluginHost {
    pub(super) fn log(&self, params: &Value) -> Result<Value, ErrorObject> {
        let level = match &params["level"] {
            Value::Null => "info",
            Value::String(level) if LEVELS.contains(&level.as_str()) => level.as_str(),
            _ => {
                let levels = LEVELS.join(", ");
                return Err(invalid_params(format!("`level` must be one of {levels}")));
            }
        };
        let Some(message) = params["message"].as_str() else {
            return Err(invalid_params("`message` must be a string"));
        };
        let message = &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)];
        // A message is one entry, whatever lines it has.
        let message = message.replace('\n', "\n  ");
        let is_logged = self.append(&self.log_budget, format!("{level}: {message}\n"));
        Ok(json!({ "logged": is_logged }))
    }
}
