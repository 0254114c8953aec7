//! Those who hear of threads.

use std::sync::Arc;

use raddle_core::Seq;
use raddle_protocol::{Notification, RequestId};
use serde_json::Value;

/// Someone who wants to hear of threads. Hearing never waits.
pub trait Listener: Send + Sync {
    /// Says something; false when nobody hears it any more.
    fn hear(&self, heard: &Heard) -> bool;

    /// Whether anybody still hears.
    fn is_there(&self) -> bool;
}

/// What is heard.
#[derive(Clone, Debug)]
pub enum Heard {
    /// Something happened. Only the last notification of a record carries its number, and only to
    /// subscribers of its thread.
    Told {
        /// What the wire says of it.
        notification: Arc<Notification>,
        /// The record's number.
        seq: Option<Seq>,
    },
    /// A request.
    Asked {
        /// Its id, the same for as long as it is open.
        id: RequestId,
        /// What is asked for.
        method: &'static str,
        /// The question.
        params: Arc<Value>,
    },
}
