//! Spans of the log: the connection and the request that a line belongs to.
//!
//! Spans have the level `info`. Below that level they are not created, so they cost nothing.

use raddle_rpc::Id;
use tracing::{Instrument, Span, field};

/// Target of all spans of this crate, so that one filter selects them; docs/operating.md names it.
const SPANS: &str = "raddle_server::spans";

/// Returns the span of a connection. The name of its client is recorded once it is known.
pub(crate) fn connection(number: u64, transport: &'static str) -> Span {
    tracing::info_span!(
        target: SPANS,
        "connection",
        number,
        %transport,
        client = field::Empty
    )
}

/// Returns the span of a request on a connection.
pub(crate) fn request(connection: &Span, method: &'static str, id: &Id) -> Span {
    // A field of type `str` is logged in quotes and with escapes, so a client cannot forge a line
    // with it. A field with `%` is not.
    match id {
        Id::Integer(id) => {
            tracing::info_span!(target: SPANS, parent: connection, "request", %method, id)
        }
        Id::String(id) => {
            tracing::info_span!(target: SPANS, parent: connection, "request", %method, id)
        }
    }
}

/// Spawns a task in the current span.
pub(crate) fn spawn<F>(future: F)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.in_current_span());
}
