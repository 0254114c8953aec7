//! Subscribers of threads.

use std::sync::Arc;

use raddle_core::Seq;
use raddle_core::ports::BoxFuture;
use raddle_protocol::{Notification, RequestId};
use serde_json::Value;

/// A receiver of a thread's events. Delivery never waits.
pub trait Subscriber: Send + Sync {
    /// Delivers an event. Returns false if the subscriber is gone.
    fn deliver(&self, delivery: &Delivery) -> bool;

    /// Whether the subscriber still exists.
    fn is_connected(&self) -> bool;

    /// Whether it may receive requests; otherwise it only receives notifications.
    fn can_answer(&self) -> bool {
        true
    }

    /// Whether it receives `turn/progress`.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Whether it receives `plugin/event`.
    fn wants_plugin_events(&self) -> bool {
        false
    }

    /// Whether it can accept more events. A subscriber without capacity is caught up from the
    /// journal later, and loses nothing.
    fn has_capacity(&self) -> bool {
        true
    }

    /// Waits for capacity for this many bytes. Returns `None` if the subscriber is gone.
    fn reserve(&self, bytes: usize) -> BoxFuture<'static, Option<Permit>> {
        let _ = bytes;
        let permit = self.is_connected().then(|| Box::new(()) as Permit);
        Box::pin(std::future::ready(permit))
    }
}

/// Capacity that is reserved until this is dropped.
pub type Permit = Box<dyn Send>;

/// An event for a subscriber.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// A stored record. Only the last notification of a record carries its sequence number, and
    /// only to subscribers of its thread.
    Record {
        /// Notification of the record.
        notification: Arc<Notification>,
        /// Sequence number of the record.
        seq: Option<Seq>,
    },
    /// An event that is not stored. It has no sequence number and is not repeated.
    Notice(Arc<Notification>),
    /// A request of the server.
    Request {
        /// Its id, which stays the same as long as it is open.
        id: RequestId,
        /// Name of the method.
        method: &'static str,
        /// Params of the request.
        params: Arc<Value>,
    },
}
