//! Doors: where clients come in.

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
use crate::socket::{SocketError, SocketFile};
use crate::watchdog::{Watchdog, WatchedSockets};
use crate::{
    AdminPages, Auth, Close, Connection, ConnectionLimits, HttpPage, ListenAddress, Outgoing,
    Transport, stdio,
};

/// How many accepted connections may wait to be taken.
const ACCEPTED: usize = 64;

/// How long a door waits after the system could not give it another descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much the system keeps unsent for a slow peer. Its own choice may be megabytes, and a peer
/// would be taking bytes for a long time before we saw any progress.
const UNSENT_BYTES_MAX: u32 = 128 << 10;

/// A peer that vanished without a word is noticed after about two minutes.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(15))
    .with_retries(4);

/// How to open a door.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Where.
    pub listen: ListenAddress,
    /// The unix socket that `unix://` means.
    pub default_socket: PathBuf,
    /// What a websocket must show.
    pub auth: Auth,
    /// Whether `Auth::Open` may be used on a loopback address.
    pub insecure_loopback: bool,
    /// Host names, besides our own address, that a request may name.
    pub host_names: Arc<[String]>,
    /// What hangs beside it, if anything.
    pub admin_pages: Option<Arc<dyn AdminPages>>,
    /// Bounds of the door and of each connection.
    pub limits: ConnectionLimits,
}

/// Why a door did not open.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// A TCP listener must ask for a token.
    #[error(
        "refusing to listen on ws://{0} without a token: add --ws-auth capability-token with --ws-token-file PATH, \
         or --insecure-loopback on a loopback address"
    )]
    NoToken(SocketAddr),
    /// `--insecure-loopback` on an address others can reach.
    #[error(
        "--insecure-loopback works on loopback addresses only, and {0} is not one; use --ws-auth"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be bound.
    #[error("cannot listen on ws://{address}: {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// Another server answers on the socket.
    #[error("another server is listening on {}; stop it, or name another path with --listen unix://PATH", .0.display())]
    InUse(PathBuf),
    /// The socket cannot be made.
    #[error("cannot listen on {}: {error}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// Stdin and stdout cannot be used.
    #[error("cannot use stdin and stdout: {0}")]
    Stdio(io::Error),
}

/// All open doors. Connections come out of [`Doors::next`].
#[derive(Debug)]
pub struct Listeners {
    accepted: mpsc::Receiver<Connection>,
    /// Gone once the doors are closed; then only those on their way in still have one.
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
    /// No door yet.
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

    /// Opens a door. Closed doors stay closed.
    pub async fn open(&mut self, door: Listener) -> Result<(), ListenerError> {
        let Some(sender) = self.sender.clone() else {
            return Ok(());
        };
        match door.listen.clone() {
            ListenAddress::Off => Ok(()),
            ListenAddress::Stdio => {
                let connection = stdio(door.limits).map_err(ListenerError::Stdio)?;
                // The channel was just made, or holds a few; there is room.
                sender
                    .try_send(connection)
                    .map_err(|_| ListenerError::Stdio(io::ErrorKind::Other.into()))
            }
            ListenAddress::Websocket(address) => self.open_tcp(address, door, &sender).await,
            ListenAddress::Unix(path) => {
                let path = path.unwrap_or_else(|| door.default_socket.clone());
                self.open_unix(path, &door, &sender).await
            }
        }
    }

    /// The next client. Waits for ever when no door is open.
    pub async fn next(&mut self) -> Option<Connection> {
        self.accepted.recv().await
    }

    /// What to tell the person who started the server.
    pub fn banners(&self) -> &[String] {
        &self.banners
    }

    /// Where clients come in, as `--listen` would say it; ports are those that were found.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Has a thread outside of this runtime look whether the runtime still runs, until what it returns is dropped. While
    /// it does, `beat` is called about once a second; while it does not, whoever comes is shown the page. Nobody looks
    /// if there is no door to come to.
    pub fn watch(
        &self,
        stuck: &HttpPage,
        beat: impl FnMut() + Send + 'static,
    ) -> io::Result<Option<Watchdog>> {
        let has_door = !self.addresses.is_empty();
        let begin = || Watchdog::begin(self.watched.clone(), stuck, beat);
        has_door.then(begin).transpose()
    }

    /// Closes every door and removes the socket files. Connections stay; who is still at the HTTP
    /// request is told to come back later.
    pub fn close(&mut self) {
        self.is_open.store(false, Ordering::Release);
        self.sender = None;
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.sockets.clear();
        self.watched.close();
    }

    /// Closes every door, and says goodbye to those who were let in and not taken over by anyone.
    pub async fn shutdown(&mut self) {
        self.close();
        let mut leaving: Vec<Outgoing> = Vec::new();
        while let Some(connection) = self.accepted.recv().await {
            connection.outgoing.close(Close::GOING_AWAY);
            leaving.push(connection.outgoing);
        }
        for outgoing in leaving {
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
        door: Listener,
        sender: &mpsc::Sender<Connection>,
    ) -> Result<(), ListenerError> {
        if matches!(door.auth, Auth::Open) {
            if !door.insecure_loopback {
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
        let token = door.auth.banner();
        self.addresses.push(format!("ws://{bound}"));
        self.banners.push(format!(
            "listening on ws://{bound}\n  readyz: http://{bound}/readyz\n  healthz: http://{bound}/healthz\n  token: {token}"
        ));
        let hosts = AllowedHosts::Of {
            bound,
            names: door.host_names,
        };
        let rules = Arc::new(ListenerRules {
            auth: door.auth,
            hosts,
            limits: door.limits,
            admin_pages: door.admin_pages.clone(),
            slots: ConnectionSlots::new(door.limits),
            acceptor: self.acceptor(sender),
        });
        self.tasks.push(tokio::spawn(async move {
            loop {
                let Some(stream) = next_stream(listener.accept().await).await else {
                    continue;
                };
                tune(&stream, rules.limits);
                let visitor = PeerInfo {
                    transport: Transport::Websocket,
                    principal: None,
                };
                serve(stream, visitor, &rules).await;
            }
        }));
        Ok(())
    }

    async fn open_unix(
        &mut self,
        path: PathBuf,
        door: &Listener,
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
        // Others may stand in another folder.
        let shown = std::path::absolute(&path).unwrap_or(path);
        let address = format!("unix://{}", shown.display());
        self.banners.push(format!("listening on {address}"));
        self.addresses.push(address);
        self.sockets.push(socket);
        // The socket's owner is the gate here, not a token.
        let rules = Arc::new(ListenerRules {
            auth: Auth::Open,
            hosts: AllowedHosts::Any,
            limits: door.limits,
            admin_pages: door.admin_pages.clone(),
            slots: ConnectionSlots::new(door.limits),
            acceptor: self.acceptor(sender),
        });
        self.tasks.push(tokio::spawn(async move {
            let ours = rustix::process::geteuid().as_raw();
            loop {
                let Some(stream) = next_stream(listener.accept().await).await else {
                    continue;
                };
                let uid = match stream.peer_cred() {
                    Ok(credentials) if credentials.uid() == ours || credentials.uid() == 0 => {
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
                let visitor = PeerInfo {
                    transport: Transport::Unix,
                    principal: Some(format!("uid:{uid}").into()),
                };
                serve(stream, visitor, &rules).await;
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

/// An accepted stream; a failed accept (no descriptors left) pauses the door and is tried again.
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

/// None of these is worth refusing a client for.
fn tune(stream: &TcpStream, limits: ConnectionLimits) {
    let socket = SockRef::from(stream);
    // Small messages must not wait for each other.
    let _ = socket.set_tcp_nodelay(true);
    let _ = socket.set_tcp_keepalive(&KEEPALIVE);
    let _ = socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
    // Whoever vanished while there was something for it, if only a ping. One who is there and does not read is
    // given up before, with a reason.
    let _ = socket.set_tcp_user_timeout(Some(limits.write + limits.write / 4));
}
