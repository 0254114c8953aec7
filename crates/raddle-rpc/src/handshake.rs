//! The HTTP phase of a socket: from the first byte to the upgrade.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::http::{self, ListenerRules};
use crate::{ConnectionLimits, Transport};

/// Limit: the HTTP head of a websocket; beyond it, the server responds with 431.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Transport of a peer, and its identity if the listener knows it.
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo {
    pub transport: Transport,
    pub principal: Option<Box<str>>,
}

/// Capacity of one listener. Unauthenticated sockets cannot use up the capacity of authenticated
/// ones.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionSlots {
    connected: Arc<Semaphore>,
    handshakes: Arc<HandshakeSlots>,
}

impl ConnectionSlots {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        let connected = limits.connections_max.min(Semaphore::MAX_PERMITS);
        Self {
            connected: Arc::new(Semaphore::new(connected)),
            handshakes: Arc::new(HandshakeSlots {
                max: limits.handshakes_max,
                state: Mutex::default(),
                released: Notify::new(),
            }),
        }
    }

    /// Reserves capacity for an authenticated peer.
    pub(crate) fn connect(&self) -> Option<OwnedSemaphorePermit> {
        self.connected.clone().try_acquire_owned().ok()
    }
}

/// Capacity for handshakes. Unauthenticated sockets may occupy all of it and stay silent. When it
/// is full, the oldest silent socket is evicted for the next one, which may have a token.
#[derive(Debug)]
struct HandshakeSlots {
    max: usize,
    state: Mutex<State>,
    /// Notified when a slot is released.
    released: Notify,
}

#[derive(Debug, Default)]
struct State {
    occupied: usize,
    /// Sockets without a complete request, oldest first, and the signal that evicts each.
    silent: BTreeMap<u64, Arc<Notify>>,
    next_number: u64,
    /// Whether the full state is already logged. Avoids a log line per socket.
    is_full: bool,
}

struct HandshakeSlot {
    handshakes: Arc<HandshakeSlots>,
    number: u64,
    evicted: Arc<Notify>,
}

impl HandshakeSlots {
    /// Reserves a slot, waiting for an evicted socket if necessary. Returns `None` if every slot
    /// has a complete request and is being answered.
    async fn enter(self: &Arc<Self>) -> Option<HandshakeSlot> {
        let mut is_evicting = false;
        loop {
            let released = self.released.notified();
            match self.try_enter(is_evicting) {
                SlotResult::Granted(handshake) => return Some(handshake),
                SlotResult::Wait => is_evicting = true,
                SlotResult::Full => return None,
            }
            released.await;
        }
    }

    fn try_enter(self: &Arc<Self>, is_evicting: bool) -> SlotResult {
        let mut state = self.state();
        let is_full = state.occupied >= self.max;
        if is_full && !state.is_full {
            tracing::warn!("too many handshakes at once; evicting the oldest");
        }
        if !is_evicting {
            state.is_full = is_full;
        }
        if is_full {
            if is_evicting {
                return SlotResult::Wait;
            }
            return match state.silent.pop_first() {
                Some((_, oldest)) => {
                    oldest.notify_one();
                    SlotResult::Wait
                }
                None => SlotResult::Full,
            };
        }
        let number = state.next_number;
        let evicted = Arc::new(Notify::new());
        state.next_number += 1;
        state.occupied += 1;
        state.silent.insert(number, evicted.clone());
        SlotResult::Granted(HandshakeSlot {
            handshakes: self.clone(),
            number,
            evicted,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock; if it did, the counts are still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Result of [`HandshakeSlots::try_enter`].
enum SlotResult {
    Granted(HandshakeSlot),
    /// A socket was evicted, and its slot will be released.
    Wait,
    Full,
}

impl HandshakeSlot {
    /// Marks the request as complete. It is answered and no longer evicted.
    fn mark_received(&self) {
        self.handshakes.state().silent.remove(&self.number);
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut state = self.handshakes.state();
        state.silent.remove(&self.number);
        state.occupied -= 1;
        drop(state);
        self.handshakes.released.notify_waiters();
    }
}

/// Answers the HTTP request of a socket, or closes the socket if there is no handshake slot. Waits
/// only for the slot of an evicted socket.
pub(crate) async fn serve<S>(stream: S, peer: PeerInfo, rules: &Arc<ListenerRules>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(handshake) = rules.slots.handshakes.enter().await else {
        return;
    };
    let rules = rules.clone();
    tokio::spawn(async move {
        let deadline = rules.limits.handshake;
        let service = service_fn(|request| {
            handshake.mark_received();
            let (rules, peer) = (rules.clone(), peer.clone());
            async move {
                let answer = http::answer(&rules, peer, request).await;
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(deadline)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::select! {
            // Prefer answering a request that has just arrived.
            biased;
            // The deadline also covers a peer that reads the response slowly.
            outcome = timeout(deadline, connection) => match outcome {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "http connection failed"),
                Err(_) => tracing::info!("http handshake deadline passed"),
            },
            () = handshake.evicted.notified() => {
                tracing::debug!("handshake evicted: no slot is free");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshakes(max: usize) -> Arc<HandshakeSlots> {
        let limits = ConnectionLimits {
            handshakes_max: max,
            ..ConnectionLimits::default()
        };
        ConnectionSlots::new(limits).handshakes
    }

    /// Whether the slot was evicted.
    async fn is_evicted(handshake: &HandshakeSlot) -> bool {
        let evicted = handshake.evicted.notified();
        tokio::select! { biased; () = evicted => true, () = std::future::ready(()) => false }
    }

    #[tokio::test]
    async fn the_oldest_silent_handshake_is_evicted() {
        let handshakes = handshakes(3);
        let received = handshakes.enter().await.expect("a place");
        let silent = handshakes.enter().await.expect("a place");
        let late = handshakes.enter().await.expect("a place");
        received.mark_received();
        let slots = handshakes.clone();
        let next = tokio::spawn(async move { slots.enter().await });
        silent.evicted.notified().await;
        assert!(!is_evicted(&received).await);
        assert!(!is_evicted(&late).await, "one is enough");
        assert!(!next.is_finished(), "it is still there");
        drop(silent);
        let next = next.await.expect("no panic").expect("a place");

        // When all requests are complete, none is evicted.
        late.mark_received();
        next.mark_received();
        assert!(handshakes.enter().await.is_none());
        drop(received);
        assert!(handshakes.enter().await.is_some());
    }
}
