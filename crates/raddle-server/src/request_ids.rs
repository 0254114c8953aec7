//! Integer ids of server requests, for clients of the unextended protocol: some accept no others.
//!
//! A thread names a request by a text that is valid in every process. The integer is a hash of that
//! text, so every connection and every process has the same one for a request. An open request is
//! sent again to each new subscriber, so a connection knows all that its client may answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use raddle_protocol::ThreadId;
use sha2::{Digest as _, Sha256};

/// Number of bits of an id: JavaScript represents such an integer exactly.
const ID_BITS: u32 = 53;

/// The open requests that were sent to one client: their texts by their integers.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    open: Mutex<HashMap<i64, Box<str>>>,
}

impl RequestIds {
    /// Stores a request that is sent to the client, and returns its integer.
    pub(crate) fn open(&self, name: &str) -> i64 {
        let number = hash(name);
        self.lock().insert(number, name.into());
        number
    }

    /// Removes a request that is resolved, and returns its integer.
    pub(crate) fn close(&self, name: &str) -> i64 {
        let number = hash(name);
        self.lock().remove(&number);
        number
    }

    /// Removes the requests of a thread that the client no longer subscribes to.
    pub(crate) fn close_all(&self, thread: ThreadId) {
        let prefix = format!("{thread}:");
        self.lock().retain(|_, name| !name.starts_with(&*prefix));
    }

    /// Returns the text of an open request.
    pub(crate) fn name(&self, number: i64) -> Option<Box<str>> {
        self.lock().get(&number).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Box<str>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a positive integer.
fn hash(name: &str) -> i64 {
    let digest = Sha256::digest(name.as_bytes());
    let bytes = digest.iter().take(8);
    let number = bytes.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    (number >> (u64::BITS - ID_BITS)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_integer_on_every_connection() {
        let (first, second) = (RequestIds::default(), RequestIds::default());
        let number = first.open("thread:0");
        assert_eq!(first.open("thread:0"), number);
        assert_eq!(second.name(number), None);
        assert_eq!(second.close("thread:0"), number);
        assert_eq!(second.name(number), None);
        assert_eq!(second.open("thread:0"), number);
        assert_eq!(second.name(number).as_deref(), Some("thread:0"));
        assert_ne!(first.open("thread:1"), number);
        assert!((0..1 << ID_BITS).contains(&number), "{number}");
    }

    #[test]
    fn only_open_requests_are_stored() {
        let ids = RequestIds::default();
        let (thread, other) = (ThreadId::mint(), ThreadId::mint());
        let number = ids.open(&format!("{thread}:0"));
        for later in 0..1000 {
            let name = format!("{other}:{later}");
            ids.open(&name);
            ids.close(&name);
        }
        assert_eq!(ids.name(number), Some(format!("{thread}:0").into()));
        assert_eq!(ids.lock().len(), 1);
        ids.close_all(other);
        assert_eq!(ids.lock().len(), 1);
        ids.close_all(thread);
        assert_eq!(ids.lock().len(), 0);
    }
}
