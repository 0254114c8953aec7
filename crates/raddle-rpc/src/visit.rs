//! A socket from its first byte to its upgrade.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::http::{self, Rules};
use crate::{Limits, Transport};

/// The largest HTTP head in front of a websocket.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// How long a visitor may take to ask for something when there is no room for it.
const BUSY_HANDSHAKE: Duration = Duration::from_secs(1);

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
    handshakes: Arc<Semaphore>,
    /// A few more handshakes, only to say that there are too many, or that the server is well.
    busy: Arc<Semaphore>,
    /// Whether it is known that there are too many. A crowd fills no log.
    is_full: Arc<AtomicBool>,
}

/// A place at the handshake.
pub(crate) struct Handshake {
    _place: OwnedSemaphorePermit,
    is_busy: bool,
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            connected: places(limits.connections_max),
            handshakes: places(limits.handshakes_max),
            busy: places(limits.handshakes_max / 8 + 1),
            is_full: Arc::default(),
        }
    }

    /// A place for a peer that is let in.
    pub(crate) fn connect(&self) -> Option<OwnedSemaphorePermit> {
        self.connected.clone().try_acquire_owned().ok()
    }

    fn handshake(&self) -> Option<Handshake> {
        let handshake = self.handshakes.clone().try_acquire_owned();
        let is_busy = handshake.is_err();
        if self.is_full.swap(is_busy, Ordering::Relaxed) != is_busy && is_busy {
            tracing::warn!("too many handshakes at once; some are refused");
        }
        let place = match handshake {
            Ok(place) => place,
            Err(_) => self.busy.clone().try_acquire_owned().ok()?,
        };
        Some(Handshake {
            _place: place,
            is_busy,
        })
    }
}

/// Answers the one HTTP request of a socket, or hangs up when there is not even a place to refuse it.
pub(crate) fn serve<S>(stream: S, visitor: Visitor, rules: &Arc<Rules>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(handshake) = rules.places.handshake() else {
        return;
    };
    let rules = rules.clone();
    let is_busy = handshake.is_busy;
    let deadline = if is_busy {
        rules.limits.handshake.min(BUSY_HANDSHAKE)
    } else {
        rules.limits.handshake
    };
    tokio::spawn(async move {
        let service = service_fn(move |request| {
            let answer = http::answer(&rules, visitor.clone(), is_busy, request);
            async move { Ok::<_, std::convert::Infallible>(answer) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(deadline)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        // A peer that takes the answer slowly is held to the same deadline.
        match timeout(deadline, connection).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "http connection failed"),
            Err(_) => tracing::info!("http handshake deadline passed"),
        }
        drop(handshake);
    });
}
