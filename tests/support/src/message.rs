//! Messages of the server, as a client receives them.

use anyhow::Result;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A message from the server.
#[derive(Debug, Deserialize)]
pub struct ServerMessage {
    /// Id of a request or a response, otherwise null.
    #[serde(default)]
    pub id: Value,
    /// Method of a request or a notification, otherwise empty.
    #[serde(default)]
    pub method: String,
    /// Raw params, so that two messages can be compared byte by byte.
    pub params: Option<Box<RawValue>>,
    /// Result of a response.
    pub result: Option<Value>,
    /// Error of a response.
    pub error: Option<Value>,
    /// Number of the record, if the client requested numbers.
    pub seq: Option<u64>,
}

impl ServerMessage {
    /// Parses the params.
    pub fn params(&self) -> Result<Value> {
        let params = self.params.as_ref().map_or("null", |it| it.get());
        Ok(serde_json::from_str(params)?)
    }

    /// Whether it is a notification, neither a response nor a request.
    pub fn is_notification(&self) -> bool {
        !self.method.is_empty() && self.id.is_null()
    }

    /// Whether both have the same content. Only the time of sending may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        fn raw_params(it: &ServerMessage) -> Option<&str> {
            it.params.as_ref().map(|it| it.get())
        }
        self.method == other.method
            && self.seq == other.seq
            && raw_params(self) == raw_params(other)
    }
}
