//! Writing messages. A frame is encoded once and shared by everyone it goes to.

use bytes::Bytes;
use serde::Serialize;

use crate::{ErrorObject, Id, code};

/// The answer to a request.
pub fn answer<T: Serialize>(id: &Id, result: &T) -> Bytes {
    #[derive(Serialize)]
    struct Answer<'a, T> {
        id: &'a Id,
        result: &'a T,
    }
    let mut frame = Vec::with_capacity(256);
    match serde_json::to_writer(&mut frame, &Answer { id, result }) {
        Ok(()) => frame.into(),
        Err(error) => refusal(
            Some(id),
            &ErrorObject::new(
                code::INTERNAL,
                format!("failed to serialize response: {error}"),
            ),
        ),
    }
}

/// An error answer; without an id when the request had no usable one.
pub fn refusal(id: Option<&Id>, error: &ErrorObject) -> Bytes {
    #[derive(Serialize)]
    struct Refusal<'a> {
        id: Option<&'a Id>,
        error: &'a ErrorObject,
    }
    encode(&Refusal { id, error })
}

/// A request of ours. One that cannot be written is never sent, so its caller must know.
pub fn request<T: Serialize>(
    id: &Id,
    method: &str,
    params: &T,
) -> Result<Bytes, serde_json::Error> {
    #[derive(Serialize)]
    struct Request<'a, T> {
        id: &'a Id,
        method: &'a str,
        params: &'a T,
    }
    serde_json::to_vec(&Request { id, method, params }).map(Bytes::from)
}

/// A notification, stamped with the time it left, and numbered if it is the last word about a record.
pub fn notification<T: Serialize>(
    method: &str,
    params: &T,
    emitted_at_ms: Option<i64>,
    seq: Option<u64>,
) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Notification<'a, T> {
        method: &'a str,
        params: &'a T,
        #[serde(skip_serializing_if = "Option::is_none")]
        emitted_at_ms: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    }
    encode(&Notification {
        method,
        params,
        emitted_at_ms,
        seq,
    })
}

fn encode<T: Serialize>(message: &T) -> Bytes {
    let mut frame = Vec::with_capacity(256);
    // Our own types have string keys and no failing parts; only a caller's map could fail here.
    if let Err(error) = serde_json::to_writer(&mut frame, message) {
        tracing::error!(%error, "a message could not be written");
        frame.clear();
    }
    frame.into()
}
