//! A socket from its first byte to its upgrade.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::http::{self, Rules};
use crate::{Limits, Transport};

/// The largest HTTP head in front of a websocket.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Who came through a door, as far as the door can tell.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub transport: Transport,
    pub principal: Option<Box<str>>,
}

/// The places of one door. Who has not shown a token yet can take none from those who have.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    connected: Arc<Semaphore>,
    handshakes: Arc<Handshakes>,
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Self {
        let connected = limits.connections_max.min(Semaphore::MAX_PERMITS);
        Self {
            connected: Arc::new(Semaphore::new(connected)),
            handshakes: Arc::new(Handshakes {
                max: limits.handshakes_max,
                state: Mutex::default(),
                left: Notify::new(),
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
struct Handshakes {
    max: usize,
    state: Mutex<State>,
    /// Woken when someone has left.
    left: Notify,
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
struct Handshake {
    handshakes: Arc<Handshakes>,
    number: u64,
    sent_away: Arc<Notify>,
}

impl Handshakes {
    /// A place, once whoever makes it has left. There is none when everyone here has asked already and
    /// is being answered.
    async fn enter(self: &Arc<Self>) -> Option<Handshake> {
        let mut is_making_place = false;
        loop {
            let left = self.left.notified();
            match self.try_enter(is_making_place) {
                Entry::In(handshake) => return Some(handshake),
                Entry::Soon => is_making_place = true,
                Entry::Never => return None,
            }
            left.await;
        }
    }

    fn try_enter(self: &Arc<Self>, is_making_place: bool) -> Entry {
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
                return Entry::Soon;
            }
            return match state.silent.pop_first() {
                Some((_, oldest)) => {
                    oldest.notify_one();
                    Entry::Soon
                }
                None => Entry::Never,
            };
        }
        let number = state.next_number;
        let sent_away = Arc::new(Notify::new());
        state.next_number += 1;
        state.here += 1;
        state.silent.insert(number, sent_away.clone());
        Entry::In(Handshake {
            handshakes: self.clone(),
            number,
            sent_away,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while holding it; if something did, the counts are still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is a place at the handshake.
enum Entry {
    In(Handshake),
    /// Someone is leaving.
    Soon,
    Never,
}

impl Handshake {
    /// The whole request has come. It is answered, whoever else waits.
    fn asked(&self) {
        self.handshakes.state().silent.remove(&self.number);
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        let mut state = self.handshakes.state();
        state.silent.remove(&self.number);
        state.here -= 1;
        drop(state);
        self.handshakes.left.notify_waiters();
    }
}

/// Answers the one HTTP request of a socket, or hangs up when there is not even a place to refuse it.
/// Waits only for someone who was sent away to be gone.
pub(crate) async fn serve<S>(stream: S, visitor: Visitor, rules: &Arc<Rules>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(handshake) = rules.places.handshakes.enter().await else {
        return;
    };
    let rules = rules.clone();
    tokio::spawn(async move {
        let deadline = rules.limits.handshake;
        let service = service_fn(|request| {
            handshake.asked();
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
            () = handshake.sent_away.notified() => {
                tracing::debug!("sent away at the handshake, for want of places");
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshakes(max: usize) -> Arc<Handshakes> {
        let limits = Limits {
            handshakes_max: max,
            ..Limits::default()
        };
        Places::new(limits).handshakes
    }

    /// Whether this one was told to go.
    async fn is_sent_away(handshake: &Handshake) -> bool {
        let sent_away = handshake.sent_away.notified();
        tokio::select! { biased; () = sent_away => true, () = std::future::ready(()) => false }
    }

    #[tokio::test]
    async fn the_oldest_who_has_not_asked_makes_place() {
        let handshakes = handshakes(3);
        let asked = handshakes.enter().await.expect("a place");
        let silent = handshakes.enter().await.expect("a place");
        let late = handshakes.enter().await.expect("a place");
        asked.asked();
        let door = handshakes.clone();
        let next = tokio::spawn(async move { door.enter().await });
        silent.sent_away.notified().await;
        assert!(!is_sent_away(&asked).await);
        assert!(!is_sent_away(&late).await, "one is enough");
        assert!(!next.is_finished(), "it is still there");
        drop(silent);
        let next = next.await.expect("no panic").expect("a place");

        // When all have asked, nobody is sent away for one more.
        late.asked();
        next.asked();
        assert!(handshakes.enter().await.is_none());
        drop(asked);
        assert!(handshakes.enter().await.is_some());
    }
}
