//! Those who hear of threads.

use std::sync::Arc;

use raddle_core::Seq;
use raddle_core::ports::BoxFuture;
use raddle_protocol::{Notification, RequestId};
use serde_json::Value;

/// Someone who wants to hear of threads. Hearing never waits.
pub trait Subscriber: Send + Sync {
    /// Says something; false when nobody hears it any more.
    fn deliver(&self, heard: &Delivery) -> bool;

    /// Whether anybody still hears.
    fn is_connected(&self) -> bool;

    /// Whether it may be asked; who may not is only told.
    fn can_answer(&self) -> bool {
        true
    }

    /// Whether it is told, while a turn runs, what that waits for.
    fn wants_progress(&self) -> bool {
        false
    }

    /// Whether it takes what it is told. One who does not is told from the journal instead, when it has
    /// room, and loses nothing.
    fn has_capacity(&self) -> bool {
        true
    }

    /// Waits until there is room for so many bytes; nothing when nobody hears any more.
    fn reserve(&self, bytes: usize) -> BoxFuture<'static, Option<Permit>> {
        let _ = bytes;
        let room = self.is_connected().then(|| Box::new(()) as Permit);
        Box::pin(std::future::ready(room))
    }
}

/// Room that is kept until this is dropped.
pub type Permit = Box<dyn Send>;

/// What is heard.
#[derive(Clone, Debug)]
pub enum Delivery {
    /// Something happened. Only the last notification of a record carries its number, and only to
    /// subscribers of its thread.
    Record {
        /// What the wire says of it.
        notification: Arc<Notification>,
        /// The record's number.
        seq: Option<Seq>,
    },
    /// Something that is no record. It has no number and is not repeated.
    Notice(Arc<Notification>),
    /// A request.
    Request {
        /// Its id, the same for as long as it is open.
        id: RequestId,
        /// What is asked for.
        method: &'static str,
        /// The question.
        params: Arc<Value>,
    },
}
