//! A socket from its first byte to its upgrade.

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

/// The largest HTTP head in front of a websocket.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Who came through a door, as far as the door can tell.
#[derive(Clone, Debug)]
pub(crate) struct PeerInfo {
    pub transport: Transport,
    pub principal: Option<Box<str>>,
}

/// The places of one door. Who has not shown a token yet can take none from those who have.
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

    /// A place for a peer that is let in.
    pub(crate) fn connect(&self) -> Option<OwnedSemaphorePermit> {
        self.connected.clone().try_acquire_owned().ok()
    }
}

/// The places at the handshake. Strangers may take all of them and say nothing, so when there is no
/// other, the one who has been silent for longest makes place for the next: it may be one with a token.
#[derive(Debug)]
struct HandshakeSlots {
    max: usize,
    state: Mutex<State>,
    /// Woken when someone has left.
    released: Notify,
}

#[derive(Debug, Default)]
struct State {
    here: usize,
    /// Those whose request has not come yet, the oldest first, and what sends each away.
    silent: BTreeMap<u64, Arc<Notify>>,
    next_number: u64,
    /// Whether it is known that there are too many. A crowd fills no log.
    is_full: bool,
}

/// A place at the handshake.
struct HandshakeSlot {
    handshakes: Arc<HandshakeSlots>,
    number: u64,
    evicted: Arc<Notify>,
}

impl HandshakeSlots {
    /// A place, once whoever makes it has left. There is none when everyone here has asked already and
    /// is being answered.
    async fn enter(self: &Arc<Self>) -> Option<HandshakeSlot> {
        let mut is_making_place = false;
        loop {
            let left = self.released.notified();
            match self.try_enter(is_making_place) {
                SlotResult::Granted(handshake) => return Some(handshake),
                SlotResult::Wait => is_making_place = true,
                SlotResult::Full => return None,
            }
            left.await;
        }
    }

    fn try_enter(self: &Arc<Self>, is_making_place: bool) -> SlotResult {
        let mut state = self.state();
        let is_full = state.here >= self.max;
        if is_full && !state.is_full {
            tracing::warn!("too many handshakes at once; the oldest are sent away");
        }
        if !is_making_place {
            state.is_full = is_full;
        }
        if is_full {
            if is_making_place {
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
        let sent_away = Arc::new(Notify::new());
        state.next_number += 1;
        state.here += 1;
        state.silent.insert(number, sent_away.clone());
        SlotResult::Granted(HandshakeSlot {
            handshakes: self.clone(),
            number,
            evicted: sent_away,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding it; if something did, the counts are still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is a place at the handshake.
enum SlotResult {
    Granted(HandshakeSlot),
    /// Someone is leaving.
    Wait,
    Full,
}

impl HandshakeSlot {
    /// The whole request has come. It is answered, whoever else waits.
    fn mark_received(&self) {
        self.handshakes.state().silent.remove(&self.number);
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut state = self.handshakes.state();
        state.silent.remove(&self.number);
        state.here -= 1;
        drop(state);
        self.handshakes.released.notify_waiters();
    }
}

/// Answers the one HTTP request of a socket, or hangs up when there is not even a place to refuse it.
/// Waits only for someone who was sent away to be gone.
pub(crate) async fn serve<S>(stream: S, visitor: PeerInfo, rules: &Arc<ListenerRules>)
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
            let (rules, visitor) = (rules.clone(), visitor.clone());
            async move {
                let answer = http::answer(&rules, visitor, request).await;
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
            // A request that has just come is answered.
            biased;
            // A peer that takes the answer slowly is held to the same deadline.
            outcome = timeout(deadline, connection) => match outcome {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "http connection failed"),
                Err(_) => tracing::info!("http handshake deadline passed"),
            },
            () = handshake.evicted.notified() => {
                tracing::debug!("sent away at the handshake, for want of places");
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

    /// Whether this one was told to go.
    async fn is_sent_away(handshake: &HandshakeSlot) -> bool {
        let sent_away = handshake.evicted.notified();
        tokio::select! { biased; () = sent_away => true, () = std::future::ready(()) => false }
    }

    #[tokio::test]
    async fn the_oldest_who_has_not_asked_makes_place() {
        let handshakes = handshakes(3);
        let asked = handshakes.enter().await.expect("a place");
        let silent = handshakes.enter().await.expect("a place");
        let late = handshakes.enter().await.expect("a place");
        asked.mark_received();
        let door = handshakes.clone();
        let next = tokio::spawn(async move { door.enter().await });
        silent.evicted.notified().await;
        assert!(!is_sent_away(&asked).await);
        assert!(!is_sent_away(&late).await, "one is enough");
        assert!(!next.is_finished(), "it is still there");
        drop(silent);
        let next = next.await.expect("no panic").expect("a place");

        // When all have asked, nobody is sent away for one more.
        late.mark_received();
        next.mark_received();
        assert!(handshakes.enter().await.is_none());
        drop(asked);
        assert!(handshakes.enter().await.is_some());
    }
}
