//! Connections: those in use, and those kept for the next call.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep, timeout};

use super::proxy::Proxies;
use super::tls::{Tls, TlsError};
use crate::io::{Dial, Io};

/// How many connections are kept for later calls.
const IDLE_CONNS_MAX: usize = 32;

/// For how long.
const IDLE_AGE_MAX: Duration = Duration::from_secs(30);

/// Where a connection goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemoteHost {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_safe: bool,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// It may come about if it is tried again.
    Unreachable(String),
    /// Whoever is there is not to be trusted.
    Untrusted(String),
}

/// What moves a connection's bytes.
type ConnDriver = Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>;

/// A connection. It has no task of its own: it moves while somebody waits for something on it, and
/// dropping it closes it at once.
pub(super) struct HttpConn {
    remote: RemoteHost,
    sender: SendRequest<Full<Bytes>>,
    /// Nothing when it is over: only then does a request that it did not take come back.
    connection: Option<Pin<Box<ConnDriver>>>,
    /// Whether it has carried an answer before.
    pub(super) is_used: bool,
}

impl fmt::Debug for HttpConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("place", &self.remote)
            .finish_non_exhaustive()
    }
}

impl HttpConn {
    /// Sends a request and waits for the head of its answer. One that was not sent comes back.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let response = self.sender.try_send_request(request);
        self.drive(response).await
    }

    /// Waits for some work while the connection moves its bytes.
    pub(super) async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|context| {
            self.advance(context);
            work.as_mut().poll(context)
        })
        .await
    }

    pub(super) fn advance(&mut self, context: &mut Context<'_>) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if connection.as_mut().poll(context).is_ready() {
            self.connection = None;
        }
    }

    /// Whether it can take a request, as far as can be seen from here.
    fn is_free(&mut self) -> bool {
        self.advance(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// The connections of a client.
#[derive(Debug)]
pub(super) struct HttpPool {
    dial: Arc<dyn Dial>,
    proxies: Proxies,
    tls: Tls,
    idle: Mutex<IdleConns>,
}

/// The connections that nobody uses now.
#[derive(Debug, Default)]
struct IdleConns {
    conns: Vec<(HttpConn, Instant)>,
    /// Whether somebody looks after those that get too old.
    is_watched: bool,
}

impl HttpPool {
    pub(super) fn new(dial: Arc<dyn Dial>, proxies: Proxies) -> Self {
        Self {
            dial,
            proxies,
            tls: Tls::default(),
            idle: Mutex::default(),
        }
    }

    /// A connection that was kept, the one used last first.
    pub(super) fn take_idle(&self, place: &RemoteHost) -> Option<HttpConn> {
        let mut kept = self.lock();
        while let Some(at) = kept.conns.iter().rposition(|(it, _)| it.remote == *place) {
            let (mut line, since) = kept.conns.remove(at);
            if since.elapsed() < IDLE_AGE_MAX && line.is_free() {
                return Some(line);
            }
        }
        None
    }

    /// A new connection, made safe where it should be, all within the limit.
    pub(super) async fn connect_new(
        &self,
        place: &RemoteHost,
        limit: Duration,
    ) -> Result<HttpConn, ConnectError> {
        let late = || format!("no connection within {} ms", limit.as_millis());
        let io = timeout(limit, self.dial(place))
            .await
            .map_err(|_| ConnectError::Unreachable(late()))??;
        let shaken = http1::handshake(TokioIo::new(io)).await;
        let (sender, connection) =
            shaken.map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        Ok(HttpConn {
            remote: place.clone(),
            sender,
            connection: Some(Box::pin(connection)),
            is_used: false,
        })
    }

    async fn dial(&self, place: &RemoteHost) -> Result<Box<dyn Io>, ConnectError> {
        let proxy = self
            .proxies
            .proxy_for(place)
            .map_err(ConnectError::Unreachable)?;
        let dialled = match proxy {
            Some(proxy) => self.dial.dial(&proxy.host, proxy.port).await,
            None => self.dial.dial(&place.host, place.port).await,
        };
        let mut io = dialled.map_err(|error| {
            let through = proxy.map_or_else(String::new, |it| format!("the proxy {it}: "));
            ConnectError::Unreachable(format!("{through}{error}"))
        })?;
        if let Some(proxy) = proxy {
            let tunnel = proxy.tunnel(&mut *io, place).await;
            tunnel.map_err(ConnectError::Unreachable)?;
        }
        if !place.is_safe {
            return Ok(io);
        }
        let secured = self.tls.secure(&place.host, io).await;
        secured.map_err(|error| match error {
            TlsError::Untrusted(what) => ConnectError::Untrusted(what),
            TlsError::Broken(what) => ConnectError::Unreachable(what),
        })
    }

    /// Keeps a connection whose answer has ended.
    pub(super) fn keep(self: &Arc<Self>, mut line: HttpConn) {
        if !line.is_free() {
            return;
        }
        line.is_used = true;
        let mut kept = self.lock();
        if kept.conns.len() == IDLE_CONNS_MAX {
            kept.conns.remove(0);
        }
        kept.conns.push((line, Instant::now()));
        if !std::mem::replace(&mut kept.is_watched, true) {
            let lines = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    sleep(IDLE_AGE_MAX).await;
                    if lines.upgrade().is_none_or(|lines| lines.evict_old()) {
                        return;
                    }
                }
            });
        }
    }

    /// Closes those that have got too old, and answers whether none is left.
    fn evict_old(&self) -> bool {
        let mut kept = self.lock();
        kept.conns
            .retain(|(_, since)| since.elapsed() < IDLE_AGE_MAX);
        kept.is_watched = !kept.conns.is_empty();
        !kept.is_watched
    }

    fn lock(&self) -> MutexGuard<'_, IdleConns> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
