//! The events that a followed thread delivers.

use raddle_protocol::Notification;
use serde_json::value::RawValue;

use crate::{OpenQuestion, ThreadHead};

/// An event of a thread, or of the connection to it.
#[expect(
    clippy::large_enum_variant,
    reason = "taken one at a time, and never kept in bulk"
)]
#[derive(Clone, Debug)]
pub enum ThreadEvent {
    /// A notification of the server.
    Notification {
        /// The notification with its params parsed.
        notification: Box<Notification>,
        /// Sequence number of the record, set on the record's last notification.
        seq: Option<u64>,
    },
    /// A notification that this version of the client does not know.
    Unknown {
        /// Name of the method.
        method: String,
        /// Params as the server sent them.
        params: Box<RawValue>,
        /// Sequence number, as in [`Notification`](Self::Notification).
        seq: Option<u64>,
    },
    /// A request of the server, for display. The [`RequestHandler`](crate::RequestHandler) receives
    /// it as well and answers it.
    Question(OpenQuestion),
    /// The connection was lost, and the client tries to reconnect.
    Disconnected {
        /// Reason of the loss.
        why: String,
    },
    /// The client has reconnected. The following events continue exactly after the previous ones.
    Reconnected,
    /// The thread was loaded again, because the exact continuation is no longer available or the
    /// thread was reverted to an earlier turn. The view is replaced, and the following events
    /// continue from it.
    Reset(Box<ThreadHead>),
    /// The thread cannot be followed any more. This is the last event.
    Lost {
        /// Reason of the loss.
        why: String,
    },
}
