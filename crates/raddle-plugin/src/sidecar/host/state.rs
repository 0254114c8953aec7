//! `host/state_get` and `host/state_set`: the state of a plugin, in a file of the home.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raddle_rpc::ErrorObject;
use serde_json::{Value, json};

use super::{PluginHost, invalid_params, refused};
use crate::sidecar::plugin_file::{PluginFile, PluginFileError};

/// Limit: state of one plugin, as JSON; beyond it, a change is rejected, and the plugin receives an
/// error.
const STATE_BYTES_MAX: usize = 64 << 10;

/// Longest key of a value.
const KEY_BYTES_MAX: usize = 200;

/// State of one plugin. Cheap to clone; each method blocks on the disk.
#[derive(Clone, Debug)]
pub(in crate::sidecar) struct StateStore {
    file: PluginFile,
}

/// Reason why a value is not stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum StateError {
    #[error(transparent)]
    File(#[from] PluginFileError),
    #[error(
        "the state would have {0} bytes, more than {STATE_BYTES_MAX}; remove values by setting \
         them to null"
    )]
    TooLong(usize),
    #[error("the plugin is changed, disabled or removed")]
    Stopped,
}

type Values = BTreeMap<String, Value>;

impl StateStore {
    /// Returns the store of the plugin with this id, in this home.
    pub(in crate::sidecar) fn of(home: &Path, id: &str) -> Self {
        let file = PluginFile::new(home, id, "state.json");
        Self { file }
    }

    /// Returns a value; null if there is none.
    fn get(&self, key: &str) -> Result<Value, PluginFileError> {
        let mut values: Values = self.file.read()?;
        Ok(values.remove(key).unwrap_or_default())
    }

    /// Sets a value, unless the host is stopped; null removes a value.
    fn set(&self, key: String, value: Value, is_stopped: &AtomicBool) -> Result<(), StateError> {
        self.file.update(|values: &mut Values| {
            // A late call must not write the file again once the plugin is removed.
            if is_stopped.load(Ordering::Relaxed) {
                return Err(StateError::Stopped);
            }
            match value {
                Value::Null => drop(values.remove(&key)),
                value => drop(values.insert(key, value)),
            }
            let bytes = json!(values).to_string().len();
            match bytes > STATE_BYTES_MAX {
                true => Err(StateError::TooLong(bytes)),
                false => Ok(()),
            }
        })
    }

    /// Removes the file.
    pub(in crate::sidecar) fn remove(&self) -> Result<(), PluginFileError> {
        self.file.remove()
    }
}

impl PluginHost {
    pub(super) async fn state_get(&self, params: &Value) -> Result<Value, ErrorObject> {
        let (store, key) = (self.state.clone(), key(params)?);
        let value = self.on_disk(move || store.get(&key)).await?;
        Ok(json!({ "value": value }))
    }

    pub(super) async fn state_set(&self, params: &mut Value) -> Result<Value, ErrorObject> {
        let (store, key) = (self.state.clone(), key(params)?);
        let Some(value) = params.get_mut("value").map(Value::take) else {
            return Err(invalid_params("`value` is missing; null removes a value"));
        };
        let is_stopped = self.is_stopped.clone();
        let set = move || match store.set(key, value, &is_stopped) {
            Err(StateError::File(error)) => Err(error),
            outcome => Ok(outcome.map_err(|error| error.to_string())),
        };
        self.on_disk(set).await?.map_err(refused)?;
        Ok(json!({}))
    }
}

fn key(params: &Value) -> Result<String, ErrorObject> {
    match params["key"].as_str() {
        Some(key) if (1..=KEY_BYTES_MAX).contains(&key.len()) => Ok(key.to_owned()),
        _ => Err(invalid_params(format!(
            "`key` must be a string of 1 to {KEY_BYTES_MAX} bytes"
        ))),
    }
}
