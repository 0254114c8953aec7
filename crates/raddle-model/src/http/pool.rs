//! Connections: those in use, and idle ones for the next call.

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
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep, timeout};

use super::proxy::Proxies;
use super::tls::{Tls, TlsError};
use crate::io::{Dial, Io};

/// Limit: idle connections to models, each kept for 30 s; beyond it, the oldest is closed.
const IDLE_CONNS_MAX: usize = 32;

/// Longest age of an idle connection.
const IDLE_AGE_MAX: Duration = Duration::from_secs(30);

/// Target of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemoteHost {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_safe: bool,
}

impl RemoteHost {
    /// Returns the host of an absolute address, or the problem of the address.
    pub(super) fn of(uri: &Uri) -> Result<Self, AddressError> {
        let is_safe = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(AddressError("it must begin with https:// or http://")),
        };
        let authority = uri.authority().filter(|it| !it.host().is_empty());
        let authority = authority.ok_or(AddressError("it names no host"))?;
        let default_port = if is_safe { 443 } else { 80 };
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(default_port),
            is_safe,
        })
    }
}

/// The problem of an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressError(pub(super) &'static str);

/// Reason why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// A retry may succeed.
    Unreachable(String),
    /// The peer is not trusted.
    Untrusted(String),
}

/// The future that moves a connection's bytes.
type ConnDriver = Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>;

/// A connection. It has no separate task: it makes progress while a caller waits for something on
/// it, and dropping it closes it at once.
pub(super) struct HttpConn {
    remote: RemoteHost,
    sender: SendRequest<Full<Bytes>>,
    /// `None` when it has ended: only then does a request that it did not send come back.
    connection: Option<Pin<Box<ConnDriver>>>,
    /// Whether it has carried an answer before.
    pub(super) is_used: bool,
}

impl fmt::Debug for HttpConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConn")
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

impl HttpConn {
    /// Sends a request and waits for the head of its answer. The error returns a request that was
    /// not sent.
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

    /// Whether it can accept a request. The server may have closed it unnoticed.
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

/// The connections that no call uses now.
#[derive(Debug, Default)]
struct IdleConns {
    conns: Vec<(HttpConn, Instant)>,
    /// Whether a task evicts those that get too old.
    has_evictor: bool,
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

    /// Takes an idle connection, the one used last first.
    pub(super) fn take_idle(&self, remote: &RemoteHost) -> Option<HttpConn> {
        let mut idle = self.lock();
        while let Some(at) = idle.conns.iter().rposition(|(it, _)| it.remote == *remote) {
            let (mut conn, since) = idle.conns.remove(at);
            if since.elapsed() < IDLE_AGE_MAX && conn.is_free() {
                return Some(conn);
            }
        }
        None
    }

    /// Opens a new connection, with TLS where required, within the limit.
    pub(super) async fn connect_new(
        &self,
        remote: &RemoteHost,
        limit: Duration,
    ) -> Result<HttpConn, ConnectError> {
        let timeout_error = || format!("no connection within {} ms", limit.as_millis());
        let io = timeout(limit, self.dial(remote))
            .await
            .map_err(|_| ConnectError::Unreachable(timeout_error()))??;
        let handshake = http1::handshake(TokioIo::new(io)).await;
        let (sender, connection) =
            handshake.map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        Ok(HttpConn {
            remote: remote.clone(),
            sender,
            connection: Some(Box::pin(connection)),
            is_used: false,
        })
    }

    async fn dial(&self, remote: &RemoteHost) -> Result<Box<dyn Io>, ConnectError> {
        let proxy = self
            .proxies
            .proxy_for(remote)
            .map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        let connected = match proxy {
            Some(proxy) => self.dial.dial_proxy(&proxy.host, proxy.port).await,
            None => self.dial.dial(&remote.host, remote.port).await,
        };
        let mut io = connected.map_err(|error| {
            let through = proxy.map_or_else(String::new, |it| format!("the proxy {it}: "));
            ConnectError::Unreachable(format!("{through}{error}"))
        })?;
        if let Some(proxy) = proxy {
            let tunnel = proxy.tunnel(&mut *io, remote).await;
            tunnel.map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        }
        if !remote.is_safe {
            return Ok(io);
        }
        let secured = self.tls.secure(&remote.host, io).await;
        secured.map_err(|error| match error {
            TlsError::Untrusted(what) => ConnectError::Untrusted(what),
            TlsError::Broken(what) => ConnectError::Unreachable(what),
        })
    }

    /// Keeps a connection whose answer has ended.
    pub(super) fn keep(self: &Arc<Self>, mut conn: HttpConn) {
        if !conn.is_free() {
            return;
        }
        conn.is_used = true;
        let mut idle = self.lock();
        if idle.conns.len() == IDLE_CONNS_MAX {
            idle.conns.remove(0);
        }
        idle.conns.push((conn, Instant::now()));
        if !std::mem::replace(&mut idle.has_evictor, true) {
            let pool = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    sleep(IDLE_AGE_MAX).await;
                    if pool.upgrade().is_none_or(|pool| pool.evict_old()) {
                        return;
                    }
                }
            });
        }
    }

    /// Closes connections that are too old, and returns whether none is left.
    fn evict_old(&self) -> bool {
        let mut idle = self.lock();
        idle.conns
            .retain(|(_, since)| since.elapsed() < IDLE_AGE_MAX);
        idle.has_evictor = !idle.conns.is_empty();
        !idle.has_evictor
    }

    fn lock(&self) -> MutexGuard<'_, IdleConns> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
