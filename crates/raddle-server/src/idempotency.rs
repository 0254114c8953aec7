//! Idempotent requests: the client gives them an id of its own, and each runs once.
//!
//! The thread stores the outcome in the same append as the command's records, with a hash of the
//! request and the response. A thread that a request creates is named by a hash of the request's
//! key, so that a retry finds it again.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_core::{CommandOutcome, IdempotencyKey, ThreadId};
use raddle_protocol::methods::TurnInterrupt;
use raddle_protocol::table::{Lane, Method, Resource, ServedBy};
use sha2::{Digest as _, Sha256};

use crate::call::AdmittedCall;
use crate::services::{ServerState, threads};
use crate::session::Session;
use crate::wire_error::WireError;

/// Limit: a `clientRequestId`; beyond it, the server rejects the request with -32600.
const ID_BYTES_MAX: usize = 256;

/// Identity of a request that the client may retry.
#[derive(Clone, Debug)]
pub(crate) struct RequestIdentity {
    pub(crate) key: IdempotencyKey,
    /// A hash of the params.
    pub(crate) request_hash: String,
    /// The thread that stores the outcome.
    pub(crate) thread: ThreadId,
    /// Whether the request creates that thread.
    pub(crate) creates_thread: bool,
    /// Whether that thread already exists.
    pub(crate) thread_exists: bool,
}

impl RequestIdentity {
    /// Returns the identity of a request of this client, if the client gave it an id.
    pub(crate) fn of<M: Method>(
        params: &M::Params,
        session: &Session,
    ) -> Result<Option<Box<Self>>, WireError> {
        let (Some(id), Some(client)) = (M::client_request_id(params), session.client()) else {
            return Ok(None);
        };
        if !client.has_idempotency {
            let what = "clientRequestId needs the extension raddle/idempotency; name it in capabilities.extensions of initialize";
            return Err(WireError::Refused(what.into()));
        }
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            let what = format!("clientRequestId has 1 to {ID_BYTES_MAX} bytes");
            return Err(WireError::Refused(what.into()));
        }
        let key = IdempotencyKey {
            // The prefix keeps a client from using a user's name.
            principal: match &session.peer.principal {
                Some(user) => format!("user:{user}"),
                None => format!("client:{}", client.name),
            },
            method: M::NAME.to_owned(),
            id: id.to_owned(),
        };
        let body = serde_json::to_vec(params)
            .map_err(|error| WireError::InvalidRequest(error.to_string()))?;
        let creates_thread = M::SERVED_BY == ServedBy::Creator;
        let thread = match M::lane(params) {
            _ if creates_thread => created_thread_id(&key),
            Lane::Exclusive(Resource::Thread(id)) => id,
            _ => return Ok(None),
        };
        Ok(Some(Box::new(Self {
            request_hash: STANDARD.encode(Sha256::digest(body)),
            key,
            thread,
            creates_thread,
            thread_exists: false,
        })))
    }

    /// Returns the lane of the request. A request that creates a thread is also exclusive on that
    /// thread: of two copies at once, the second must find the thread of the first.
    pub(crate) fn lane(&self, lane: Lane) -> Lane {
        match lane {
            lane if !self.creates_thread => lane,
            Lane::Exclusive(source) => Lane::FromTo(source, Resource::Thread(self.thread)),
            _ => Lane::Exclusive(Resource::Thread(self.thread)),
        }
    }
}

/// Returns the id of the thread that a request creates.
fn created_thread_id(key: &IdempotencyKey) -> ThreadId {
    let mut hash = Sha256::new();
    for part in [&key.principal, &key.method, &key.id] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    ThreadId::of_hash(bytes)
}

/// Returns a call that this process must handle. A call that ran before is answered with its stored
/// response, and this returns nothing.
pub(crate) async fn replay(state: &ServerState, mut call: AdmittedCall) -> Option<AdmittedCall> {
    let Some(identity) = call.pending.idempotency().cloned() else {
        return Some(call);
    };
    let RequestIdentity {
        key,
        request_hash,
        thread,
        ..
    } = &identity;
    match state.threads.recall(*thread, key, request_hash).await {
        Ok(Some(Err(refusal))) => {
            call.pending.error(threads::failed(refusal.into()));
            return None;
        }
        // The thread exists, so it was created under this key, even if long ago.
        Ok(_) if identity.creates_thread => call.pending.mark_thread_created(),
        // An interrupt is answered when the turn has stopped, which only its thread knows.
        Ok(Some(Ok(CommandOutcome::Kept { answer }))) if call.method != TurnInterrupt::NAME => {
            call.pending.send_stored(answer);
            return None;
        }
        // The handler reports any problem with the thread.
        Ok(_) | Err(_) => {}
    }
    Some(call)
}
