//! Requests that may come twice: a client gives them an id of its own, and each is done once.
//!
//! What was done is remembered in the thread, in the append that did it, with a hash of what was asked and the
//! answer. A thread that a request makes is named by a hash of the request's key, so that it is found again.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use raddle_core::{CommandOutcome, IdempotencyKey, ThreadId};
use raddle_protocol::methods::{ThreadFork, ThreadStart, TurnInterrupt};
use raddle_protocol::table::{Lane, Method, Resource};
use sha2::{Digest as _, Sha256};

use crate::call::Call;
use crate::gate;
use crate::services::{ServerState, threads};
use crate::session::Session;
use crate::wire_error::WireError;

/// How long a client's own id for a request may be.
const ID_BYTES_MAX: usize = 256;

/// What makes a request the same request.
#[derive(Clone, Debug)]
pub(crate) struct RequestIdentity {
    pub(crate) key: IdempotencyKey,
    /// A hash of what is asked.
    pub(crate) request_hash: String,
    /// The thread that remembers it.
    pub(crate) thread: ThreadId,
    /// Whether that is one that the request makes.
    pub(crate) creates_thread: bool,
    /// Whether it is there already.
    pub(crate) thread_exists: bool,
}

impl RequestIdentity {
    /// What a request of this client is known by, if the client gave it an id.
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
            // So that no client can take a user's name.
            principal: match &session.peer.principal {
                Some(user) => format!("user:{user}"),
                None => format!("client:{}", client.name),
            },
            method: M::NAME.to_owned(),
            id: id.to_owned(),
        };
        let body = serde_json::to_vec(params)
            .map_err(|error| WireError::InvalidRequest(error.to_string()))?;
        let makes = matches!(M::NAME, ThreadStart::NAME | ThreadFork::NAME);
        let thread = match M::lane(params) {
            _ if makes => made(&key),
            Lane::Exclusive(Resource::Thread(id)) => id,
            _ => return Ok(None),
        };
        Ok(Some(Box::new(Self {
            request_hash: STANDARD.encode(Sha256::digest(body)),
            key,
            thread,
            creates_thread: makes,
            thread_exists: false,
        })))
    }

    /// The lane of the request, if the thread that it makes asks for another than its method's: one that comes
    /// twice at once must find what the first one made.
    pub(crate) fn lane(&self, lane: Lane) -> Lane {
        match lane {
            lane if !self.creates_thread => lane,
            Lane::Exclusive(source) => Lane::FromTo(source, Resource::Thread(self.thread)),
            _ => Lane::Exclusive(Resource::Thread(self.thread)),
        }
    }
}

/// The id of the thread that a request makes.
fn made(key: &IdempotencyKey) -> ThreadId {
    let mut hash = Sha256::new();
    for part in [&key.principal, &key.method, &key.id] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    ThreadId::of_hash(bytes)
}

/// Answers a request that came before as it was answered then; any other goes on to its handler.
pub(crate) fn answer_again<M: Method>(
    rooms: &Arc<ServerState>,
    mut call: Call<M>,
    keyed: RequestIdentity,
    handle: fn(&Arc<ServerState>, Call<M>),
) {
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let RequestIdentity {
            key,
            request_hash: asked,
            thread,
            ..
        } = &keyed;
        match rooms.threads.recall(*thread, key, asked).await {
            Ok(Some(Err(refusal))) => {
                return call.reply.error(threads::failed(refusal.into()));
            }
            // It is there, so it was made under this key, even if that is long ago.
            Ok(_) if keyed.creates_thread => call.reply.mark_thread_created(),
            // An interrupt is answered when the turn has stopped, which its thread knows.
            Ok(Some(Ok(CommandOutcome::Kept { answer }))) if M::NAME != TurnInterrupt::NAME => {
                return call.reply.send_stored(answer);
            }
            // What is wrong with the thread is said where it is used.
            Ok(_) | Err(_) => {}
        }
        gate::handled(&rooms, call, handle);
    });
}
