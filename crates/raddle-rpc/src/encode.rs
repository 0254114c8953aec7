//! Encoding of messages. A frame is encoded once and shared by all its recipients.

use std::cell::Cell;

use bytes::Bytes;
use serde::Serialize;

use crate::{ErrorObject, Id, code};

/// Longest frame that is copied out of the thread-local buffer. A longer frame takes the buffer
/// with it.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// Encodes the result of a request.
pub fn answer<T: Serialize>(id: &Id, result: &T) -> Bytes {
    #[derive(Serialize)]
    struct AnswerFrame<'a, T> {
        id: &'a Id,
        result: &'a T,
    }
    match write(&AnswerFrame { id, result }) {
        Ok(frame) => frame,
        Err(error) => refusal(
            Some(id),
            &ErrorObject::new(
                code::INTERNAL,
                format!("failed to serialize response: {error}"),
            ),
        ),
    }
}

/// Encodes an error response; without an id if the request had no usable one.
pub fn refusal(id: Option<&Id>, error: &ErrorObject) -> Bytes {
    #[derive(Serialize)]
    struct ErrorFrame<'a> {
        id: Option<&'a Id>,
        error: &'a ErrorObject,
    }
    encode(&ErrorFrame { id, error })
}

/// Encodes a request of this side. Fails if the params cannot be serialized, because the request is
/// not sent then.
pub fn request<T: Serialize>(
    id: &Id,
    method: &str,
    params: &T,
) -> Result<Bytes, serde_json::Error> {
    #[derive(Serialize)]
    struct RequestFrame<'a, T> {
        id: &'a Id,
        method: &'a str,
        params: &'a T,
    }
    write(&RequestFrame { id, method, params })
}

/// Encodes a notification with its time, and with a sequence number if it is the last notification
/// of a record.
pub fn notification<T: Serialize>(
    method: &str,
    params: &T,
    emitted_at_ms: Option<i64>,
    seq: Option<u64>,
) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct NotificationFrame<'a, T> {
        method: &'a str,
        params: &'a T,
        #[serde(skip_serializing_if = "Option::is_none")]
        emitted_at_ms: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    }
    encode(&NotificationFrame {
        method,
        params,
        emitted_at_ms,
        seq,
    })
}

fn encode<T: Serialize>(message: &T) -> Bytes {
    // The protocol's types have string keys and always serialize; only a caller's map could fail
    // here.
    write(message).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot serialize a message");
        Bytes::new()
    })
}

/// Encodes a message in a thread-local buffer and copies it to a block of its exact length. A
/// growing block would be copied many times and stay larger than necessary.
fn write<T: Serialize>(message: &T) -> Result<Bytes, serde_json::Error> {
    thread_local! {
        static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    // A message that is encoded inside another one gets a new buffer.
    let mut text = BUFFER.take();
    text.clear();
    let outcome = serde_json::to_writer(&mut text, message);
    if text.len() > COPIED_BYTES_MAX {
        text.shrink_to_fit();
        return outcome.map(|()| Bytes::from(text));
    }
    let frame = outcome.map(|()| Bytes::copy_from_slice(&text));
    // Its capacity is at most twice that length.
    BUFFER.set(text);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text_bytes: usize) -> Bytes {
        answer(&Id::Integer(7), &"x".repeat(text_bytes))
    }

    #[test]
    fn a_frame_holds_its_own_message_whatever_was_written_before() {
        let frames: Vec<Bytes> = [10, 1 << 20, 3, COPIED_BYTES_MAX, 0]
            .map(encoded)
            .into_iter()
            .collect();
        for (frame, bytes) in frames.iter().zip([10, 1 << 20, 3, COPIED_BYTES_MAX, 0]) {
            let expected = format!(r#"{{"id":7,"result":"{}"}}"#, "x".repeat(bytes));
            assert_eq!(frame.as_ref(), expected.as_bytes());
        }
    }

    #[test]
    fn a_frame_takes_no_more_memory_than_its_length() {
        for bytes in [10, 900, COPIED_BYTES_MAX - 100, 1 << 20] {
            let frame = encoded(bytes);
            let length = frame.len();
            let block = frame.try_into_mut().expect("no other owner");
            assert_eq!(block.capacity(), length);
        }
    }

    /// Encodes another message while it is encoded.
    struct Nested;

    impl Serialize for Nested {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let inner = encoded(2);
            serializer.serialize_str(&String::from_utf8_lossy(&inner))
        }
    }

    #[test]
    fn a_message_may_write_another_one() {
        let frame = answer(&Id::Integer(1), &Nested);
        let expected = r#"{"id":1,"result":"{\"id\":7,\"result\":\"xx\"}"}"#;
        assert_eq!(frame.as_ref(), expected.as_bytes());
    }

    #[test]
    fn a_failed_encoding_leaves_no_residue() {
        let unserializable = std::collections::HashMap::from([((1, 2), 3)]);
        let response = answer(&Id::Integer(1), &unserializable);
        assert!(response.starts_with(br#"{"id":1,"error":"#), "{response:?}");
        assert!(request(&Id::Integer(1), "x", &unserializable).is_err());
        assert!(notification("x", &unserializable, None, None).is_empty());
        assert_eq!(encoded(1).as_ref(), br#"{"id":7,"result":"x"}"#);
    }
}
