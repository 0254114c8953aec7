//! Integer ids of server requests, for clients of the unextended protocol: some accept no others.
//!
//! A thread names a request by a text that is valid in every process. The integer is a hash of that
//! text, so every connection and every process has the same one for a request. A request is sent
//! again to each new subscriber, so a process knows the texts of all requests that may be answered.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Limit: integer ids of server requests that the server knows; beyond it, it forgets the oldest,
/// and ignores an answer to that request.
const IDS_MAX: usize = 100_000;

/// Number of bits of an id: JavaScript represents such an integer exactly.
const ID_BITS: u32 = 53;

/// The integer ids that were sent, with the texts that they stand for.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    sent: Mutex<SentIds>,
}

#[derive(Debug, Default)]
struct SentIds {
    names: HashMap<i64, Box<str>>,
    oldest_first: VecDeque<i64>,
}

impl RequestIds {
    /// Returns the integer of a request.
    pub(crate) fn number(&self, name: &str) -> i64 {
        let mut number = hash(name);
        let mut sent = self.lock();
        loop {
            match sent.names.get(&number) {
                Some(known) if **known == *name => return number,
                // Two texts with one hash are practically impossible, and must not be confused.
                Some(_) => number += 1,
                None => break,
            }
        }
        if sent.names.len() >= IDS_MAX
            && let Some(oldest) = sent.oldest_first.pop_front()
        {
            sent.names.remove(&oldest);
        }
        sent.names.insert(number, name.into());
        sent.oldest_first.push_back(number);
        number
    }

    /// Returns the text that an integer stands for.
    pub(crate) fn name(&self, number: i64) -> Option<Box<str>> {
        self.lock().names.get(&number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, SentIds> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a positive integer.
fn hash(name: &str) -> i64 {
    let digest = Sha256::digest(name.as_bytes());
    let bytes = digest.iter().take(8);
    let number = bytes.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    (number >> (u64::BITS - ID_BITS)).cast_signed()
}

/// Returns a frame with another value at a place that it has. A frame that cannot be parsed stays
/// as it is.
pub(crate) fn with_value(frame: &Bytes, pointer: &str, value: Value) -> Bytes {
    let Ok(mut message) = serde_json::from_slice::<Value>(frame) else {
        return frame.clone();
    };
    if let Some(old) = message.pointer_mut(pointer) {
        *old = value;
    }
    serde_json::to_vec(&message).map_or_else(|_| frame.clone(), Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_integer_in_every_process() {
        let (first, second) = (RequestIds::default(), RequestIds::default());
        let number = first.number("thread:0");
        assert_eq!(first.number("thread:0"), number);
        assert_eq!(second.name(number), None);
        assert_eq!(second.number("thread:0"), number);
        assert_eq!(second.name(number).as_deref(), Some("thread:0"));
        assert_ne!(first.number("thread:1"), number);
        assert!((0..1 << ID_BITS).contains(&number), "{number}");
    }
}
