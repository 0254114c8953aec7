//! Listeners, which accept the connections of clients.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::handshake::{ConnectionSlots, PeerInfo, serve};
use crate::http::{Acceptor, AllowedHosts, ListenerRules};
use crate::platform::limit_unsent;
use crate::socket::{SocketError, SocketFile};
use crate::watchdog::{Watchdog, WatchedSockets};
use crate::{
    AdminPages, Auth, Close, Connection, ConnectionLimits, HttpPage, ListenAddress, Outgoing,
    Transport, stdio,
};

/// Maximum number of accepted connections that wait for [`Listeners::next`].
const ACCEPTED: usize = 64;

/// Pause after a failed accept, for example when the process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum unsent bytes that the kernel buffers for a slow peer. Its default may be megabytes, and
/// the server would see no progress for a long time while the peer reads them.
const UNSENT_BYTES_MAX: u32 = 128 << 10;

/// Detects a vanished peer after about two minutes.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(15))
    .with_retries(4);

/// Configuration of a listener.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Address to listen on.
    pub listen: ListenAddress,
    /// Path of the unix socket for a bare `unix://`.
    pub default_socket: PathBuf,
    /// Credential that a websocket must carry.
    pub auth: Auth,
    /// Whether `Auth::Open` may be used on a loopback address.
    pub insecure_loopback: bool,
    /// Host names that a request may name, besides the bound address.
    pub host_names: Arc<[String]>,
    /// Additional HTTP pages, if any.
    pub admin_pages: Option<Arc<dyn AdminPages>>,
    /// Limits of the listener and of each connection.
    pub limits: ConnectionLimits,
}

/// Reason why a listener did not open.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// A TCP listener without a token.
    #[error(
        "refusing to listen on ws://{0} without a token: add --ws-auth capability-token with --ws-token-file PATH, \
         or --insecure-loopback on a loopback address"
    )]
    NoToken(SocketAddr),
    /// `--insecure-loopback` on an address that is not loopback.
    #[error(
        "--insecure-loopback works on loopback addresses only, and {0} is not one; use --ws-auth"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot listen on ws://{address}: {error}; name another address or port with --listen")]
    Bind {
        /// Address that the operator requested.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Another server listens on the socket.
    #[error("another server is listening on {}; stop it, or name another path with --listen unix://PATH", .0.display())]
    InUse(PathBuf),
    /// The socket cannot be created.
    #[error("cannot listen on {}: {error}", path.display())]
    Socket {
        /// Path of the socket.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Stdin and stdout cannot be used.
    #[error("cannot use stdin and stdout: {0}")]
    Stdio(io::Error),
}

/// All open listeners. [`Listeners::next`] returns their connections.
#[derive(Debug)]
pub struct Listeners {
    accepted: mpsc::Receiver<Connection>,
    /// `None` once the listeners are closed. Then only connections in their handshake still have a
    /// sender.
    sender: Option<mpsc::Sender<Connection>>,
    is_open: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    sockets: Vec<SocketFile>,
    watched: WatchedSockets,
    banners: Vec<String>,
    addresses: Vec<String>,
}

impl Default for Listeners {
    fn default() -> Self {
        Self::new()
    }
}

impl Listeners {
    /// Creates an empty set.
    pub fn new() -> Self {
        let (sender, accepted) = mpsc::channel(ACCEPTED);
        Self {
            accepted,
            sender: Some(sender),
            is_open: Arc::new(AtomicBool::new(true)),
            tasks: Vec::new(),
            sockets: Vec::new(),
            watched: WatchedSockets::default(),
            banners: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// Opens a listener. Does nothing after [`Listeners::close`].
    pub async fn open(&mut self, config: Listener) -> Result<(), ListenerError> {
        let Some(sender) = self.sender.clone() else {
            return Ok(());
        };
        match config.listen.clone() {
            ListenAddress::Off => Ok(()),
            ListenAddress::Stdio => {
                let connection = stdio(config.limits).map_err(ListenerError::Stdio)?;
                // The channel is new or nearly empty, so it has capacity.
                sender
                    .try_send(connection)
                    .map_err(|_| ListenerError::Stdio(io::ErrorKind::Other.into()))
            }
            ListenAddress::Websocket(address) => self.open_tcp(address, config, &sender).await,
            ListenAddress::Unix(path) => {
                let path = path.unwrap_or_else(|| config.default_socket.clone());
                self.open_unix(path, &config, &sender).await
            }
        }
    }

    /// Returns the next client. Waits forever if no listener is open.
    pub async fn next(&mut self) -> Option<Connection> {
        self.accepted.recv().await
    }

    /// Messages for the operator who started the server.
    pub fn banners(&self) -> &[String] {
        &self.banners
    }

    /// Addresses in the form of `--listen`, with the actual ports.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Starts a thread outside of this runtime that checks whether the runtime still runs, until
    /// the returned value is dropped. While it runs, the thread calls `beat` at every check, twice
    /// a second. While it is blocked, the thread answers new connections with the page. Without a
    /// listener no thread is started.
    pub fn watch(
        &self,
        blocked_page: &HttpPage,
        beat: impl FnMut() + Send + 'static,
    ) -> io::Result<Option<Watchdog>> {
        let has_listener = !self.addresses.is_empty();
        let begin = || Watchdog::begin(self.watched.clone(), blocked_page, beat);
        has_listener.then(begin).transpose()
    }

    /// Closes every listener and removes the socket files. Connections stay open. A client that is
    /// still in its HTTP request receives status 503.
    pub fn close(&mut self) {
        self.is_open.store(false, Ordering::Release);
        self.sender = None;
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.sockets.clear();
        self.watched.close();
    }

    /// Closes every listener, and the connections that [`Listeners::next`] has not returned.
    pub async fn shutdown(&mut self) {
        self.close();
        let mut closing: Vec<Outgoing> = Vec::new();
        while let Some(connection) = self.accepted.recv().await {
            connection.outgoing.close(Close::GOING_AWAY);
            closing.push(connection.outgoing);
        }
        for outgoing in closing {
            outgoing.when_gone().await;
        }
    }

    fn acceptor(&self, sender: &mpsc::Sender<Connection>) -> Acceptor {
        Acceptor {
            is_open: self.is_open.clone(),
            accepted: sender.downgrade(),
        }
    }

    async fn open_tcp(
        &mut self,
        address: SocketAddr,
        config: Listener,
        sender: &mpsc::Sender<Connection>,
    ) -> Result<(), ListenerError> {
        if matches!(config.auth, Auth::Open) {
            if !config.insecure_loopback {
                return Err(ListenerError::NoToken(address));
            }
            if !address.ip().is_loopback() {
                return Err(ListenerError::NotLoopback(address));
            }
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| ListenerError::Bind { address, error })?;
        let bound = listener
            .local_addr()
            .map_err(|error| ListenerError::Bind { address, error })?;
        self.watched
            .add(&listener)
            .map_err(|error| ListenerError::Bind { address, error })?;
        let token = config.auth.banner();
        self.addresses.push(format!("ws://{bound}"));
        self.banners.push(format!(
            "listening on ws://{bound}\n  readyz: http://{bound}/readyz\n  healthz: http://{bound}/healthz\n  token: {token}"
        ));
        let hosts = AllowedHosts::Of {
            bound,
            names: config.host_names,
        };
        let rules = Arc::new(ListenerRules {
            auth: config.auth,
            hosts,
            limits: config.limits,
            admin_pages: config.admin_pages.clone(),
            slots: ConnectionSlots::new(config.limits),
            acceptor: self.acceptor(sender),
        });
        self.tasks.push(tokio::spawn(async move {
            loop {
                let Some(stream) = next_stream(listener.accept().await).await else {
                    continue;
                };
                tune(&stream, rules.limits);
                let peer = PeerInfo {
                    transport: Transport::Websocket,
                    principal: None,
                };
                serve(stream, peer, &rules).await;
            }
        }));
        Ok(())
    }

    async fn open_unix(
        &mut self,
        path: PathBuf,
        config: &Listener,
        sender: &mpsc::Sender<Connection>,
    ) -> Result<(), ListenerError> {
        let (socket, listener) = match SocketFile::claim(&path).await {
            Ok(claimed) => claimed,
            Err(SocketError::InUse) => return Err(ListenerError::InUse(path)),
            Err(SocketError::Unusable(error)) => return Err(ListenerError::Socket { path, error }),
        };
        if let Err(error) = self.watched.add(&listener) {
            return Err(ListenerError::Socket { path, error });
        }
        // Clients may run in another directory.
        let absolute_path = std::path::absolute(&path).unwrap_or(path);
        let address = format!("unix://{}", absolute_path.display());
        self.banners.push(format!("listening on {address}"));
        self.addresses.push(address);
        self.sockets.push(socket);
        // The owner of the socket is checked here instead of a token.
        let rules = Arc::new(ListenerRules {
            auth: Auth::Open,
            hosts: AllowedHosts::Any,
            limits: config.limits,
            admin_pages: config.admin_pages.clone(),
            slots: ConnectionSlots::new(config.limits),
            acceptor: self.acceptor(sender),
        });
        self.tasks.push(tokio::spawn(async move {
            let own_uid = rustix::process::geteuid().as_raw();
            loop {
                let Some(stream) = next_stream(listener.accept().await).await else {
                    continue;
                };
                let uid = match stream.peer_cred() {
                    Ok(credentials) if credentials.uid() == own_uid || credentials.uid() == 0 => {
                        credentials.uid()
                    }
                    Ok(credentials) => {
                        tracing::warn!(
                            uid = credentials.uid(),
                            "another user's connection refused"
                        );
                        continue;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection without credentials refused");
                        continue;
                    }
                };
                let peer = PeerInfo {
                    transport: Transport::Unix,
                    principal: Some(format!("uid:{uid}").into()),
                };
                serve(stream, peer, &rules).await;
            }
        }));
        Ok(())
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the accepted stream. A failed accept (no descriptors left) pauses the listener.
async fn next_stream<S, A>(accepted: io::Result<(S, A)>) -> Option<S> {
    match accepted {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Sets socket options. Failures are ignored: none is worth rejecting a client.
fn tune(stream: &TcpStream, limits: ConnectionLimits) {
    let socket = SockRef::from(stream);
    // Small messages must not wait for each other.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&KEEPALIVE);
    // Detects a peer that vanished while data (or a ping) was pending. A peer that is alive but
    // does not read times out earlier, with a close reason.
    let timeout = limits.write + limits.write / 4;
    limit_unsent(&socket, UNSENT_BYTES_MAX, Some(timeout));
}
