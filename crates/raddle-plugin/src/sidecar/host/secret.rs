//! `host/secret`: a variable of the server's environment that the plugin may know.

use raddle_rpc::ErrorObject;
use serde_json::{Value, json};

use super::{PluginHost, invalid_params, refused};

impl PluginHost {
    /// Returns a secret. Its value is neither logged nor stored.
    pub(super) async fn secret(&self, params: &Value) -> Result<Value, ErrorObject> {
        let Some(name) = params["name"].as_str() else {
            return Err(invalid_params(
                "`name` must be a string, as in {\"name\": \"TRACKER_TOKEN\"}",
            ));
        };
        self.permitted(&format!("secrets:{name}"), params).await?;
        // The manifest lists the name, but not every name can be one of a variable.
        let is_variable = !name.is_empty() && !name.contains(['=', '\0']);
        let value = match is_variable {
            true => (self.secrets)(name),
            false => None,
        };
        let Some(value) = value else {
            return Err(refused(format!(
                "the environment of the server has no variable {name}, or it is no text"
            )));
        };
        self.note_act(&format!("host/secret {name}: done"));
        Ok(json!({ "value": value }))
    }
}
