//! Doors: where clients come in.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::http::{self, Hosts, Rules};
use crate::{Auth, Connection, Limits, Transport, stdio};

/// How many accepted connections may wait to be taken.
const ACCEPTED: usize = 64;

/// The largest HTTP head in front of a websocket.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// How long a door waits after the system could not give it another descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where to listen, as `--listen` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// The process that started us: `stdio://`.
    Stdio,
    /// A unix socket: `unix://` for the default one, or `unix://PATH`.
    Unix(Option<PathBuf>),
    /// A websocket: `ws://IP:PORT`.
    Websocket(SocketAddr),
    /// Nowhere: `off`.
    Off,
}

/// What is wrong with a `--listen` value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// No transport of that name.
    #[error("unknown transport `{0}`; use stdio://, unix://, unix://PATH, ws://IP:PORT or off")]
    Unknown(String),
    /// A websocket needs a literal address.
    #[error("`{0}` is not an address; write an IP and a port, like ws://127.0.0.1:4500")]
    NotAnAddress(String),
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Some(address) = text.strip_prefix("ws://") {
            let address = address.strip_suffix('/').unwrap_or(address);
            return address
                .parse()
                .map(Self::Websocket)
                .map_err(|_| ListenError::NotAnAddress(text.to_owned()));
        }
        match text.strip_prefix("unix://") {
            Some("") => return Ok(Self::Unix(None)),
            Some(path) => return Ok(Self::Unix(Some(path.into()))),
            None => {}
        }
        match text {
            "stdio://" | "stdio" => Ok(Self::Stdio),
            "off" => Ok(Self::Off),
            _ => Err(ListenError::Unknown(text.to_owned())),
        }
    }
}

/// How to open a door.
#[derive(Clone, Debug)]
pub struct Door {
    /// Where.
    pub listen: Listen,
    /// The unix socket that `unix://` means.
    pub default_socket: PathBuf,
    /// What a websocket must show.
    pub auth: Auth,
    /// Whether `Auth::Open` may be used on a loopback address.
    pub insecure_loopback: bool,
    /// Host names, besides our own address, that a request may name.
    pub host_names: Arc<[String]>,
    /// Bounds of each connection.
    pub limits: Limits,
}

/// Why a door did not open.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
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
pub struct Doors {
    accepted: mpsc::Receiver<Connection>,
    sender: mpsc::Sender<Connection>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    sockets: Vec<PathBuf>,
    banners: Vec<String>,
}

impl Default for Doors {
    fn default() -> Self {
        Self::new()
    }
}

impl Doors {
    /// No door yet.
    pub fn new() -> Self {
        let (sender, accepted) = mpsc::channel(ACCEPTED);
        Self {
            accepted,
            sender,
            tasks: Vec::new(),
            sockets: Vec::new(),
            banners: Vec::new(),
        }
    }

    /// Opens a door.
    pub async fn open(&mut self, door: Door) -> Result<(), DoorError> {
        match door.listen.clone() {
            Listen::Off => Ok(()),
            Listen::Stdio => {
                let connection = stdio(door.limits).map_err(DoorError::Stdio)?;
                // The channel was just made, or holds a few; there is room.
                self.sender
                    .try_send(connection)
                    .map_err(|_| DoorError::Stdio(io::ErrorKind::Other.into()))
            }
            Listen::Websocket(address) => self.open_tcp(address, door).await,
            Listen::Unix(path) => {
                let path = path.unwrap_or_else(|| door.default_socket.clone());
                self.open_unix(path, door).await
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

    /// Closes every door and removes the socket files; connections stay.
    pub fn close(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        for socket in self.sockets.drain(..) {
            let _ = std::fs::remove_file(socket);
        }
    }

    async fn open_tcp(&mut self, address: SocketAddr, door: Door) -> Result<(), DoorError> {
        if matches!(door.auth, Auth::Open) {
            if !door.insecure_loopback {
                return Err(DoorError::NoToken(address));
            }
            if !address.ip().is_loopback() {
                return Err(DoorError::NotLoopback(address));
            }
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| DoorError::Bind { address, error })?;
        let bound = listener
            .local_addr()
            .map_err(|error| DoorError::Bind { address, error })?;
        self.banners.push(format!(
            "listening on ws://{bound}\n  readyz: http://{bound}/readyz\n  healthz: http://{bound}/healthz"
        ));
        let hosts = Hosts::Of {
            bound,
            names: door.host_names,
        };
        let rules = Arc::new(Rules {
            auth: door.auth,
            hosts,
            limits: door.limits,
        });
        let sender = self.sender.clone();
        let places = Arc::new(Semaphore::new(door.limits.connections_max));
        self.tasks.push(tokio::spawn(async move {
            loop {
                let Some(stream) = next_stream(listener.accept().await).await else {
                    continue;
                };
                // Small messages must not wait for each other.
                let _ = stream.set_nodelay(true);
                let visit = Visit {
                    transport: Transport::Websocket,
                    principal: None,
                };
                serve(stream, visit, &rules, &sender, &places);
            }
        }));
        Ok(())
    }

    async fn open_unix(&mut self, path: PathBuf, door: Door) -> Result<(), DoorError> {
        let failed = |error| DoorError::Socket {
            path: path.clone(),
            error,
        };
        make_private_folder(&path).map_err(failed)?;
        if UnixStream::connect(&path).await.is_ok() {
            return Err(DoorError::InUse(path));
        }
        remove_stale_socket(&path).map_err(failed)?;
        let listener = UnixListener::bind(&path).map_err(failed)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        self.banners
            .push(format!("listening on unix://{}", path.display()));
        self.sockets.push(path);
        // The socket's owner is the gate here, not a token.
        let rules = Arc::new(Rules {
            auth: Auth::Open,
            hosts: Hosts::Any,
            limits: door.limits,
        });
        let sender = self.sender.clone();
        let places = Arc::new(Semaphore::new(door.limits.connections_max));
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
                let principal = Some(format!("uid:{uid}").into());
                serve(
                    stream,
                    Visit {
                        transport: Transport::Unix,
                        principal,
                    },
                    &rules,
                    &sender,
                    &places,
                );
            }
        }));
        Ok(())
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.close();
    }
}

/// Who came through a door, as far as the door can tell.
struct Visit {
    transport: Transport,
    principal: Option<Box<str>>,
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

fn serve<S>(
    stream: S,
    visit: Visit,
    rules: &Arc<Rules>,
    sender: &mpsc::Sender<Connection>,
    places: &Arc<Semaphore>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Ok(place) = places.clone().try_acquire_owned() else {
        tracing::warn!("too many connections; one more refused");
        return;
    };
    let (rules, sender) = (rules.clone(), sender.clone());
    let limits = rules.limits;
    tokio::spawn(async move {
        let (accepted, mut connections) = mpsc::channel(1);
        let service = service_fn(move |request| {
            let answer = http::answer(
                rules.clone(),
                visit.transport,
                visit.principal.clone(),
                request,
                accepted.clone(),
            );
            async move { Ok::<_, std::convert::Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.handshake)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        // A peer that takes the answer slowly is held to the same deadline.
        match timeout(limits.handshake, connection).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "http connection failed"),
            Err(_) => tracing::info!("http handshake deadline passed"),
        }
        if let Some(connection) = connections.recv().await {
            let outgoing = connection.outgoing.clone();
            if sender.send(connection).await.is_ok() {
                outgoing.when_gone().await;
            }
        }
        drop(place);
    });
}

/// Makes the socket's folder, for its owner only. A folder that exists is taken as it is if it is
/// ours and nobody else may write to it.
fn make_private_folder(socket: &Path) -> io::Result<()> {
    let Some(folder) = socket
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    else {
        return Ok(());
    };
    if !folder.exists() {
        return std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
    }
    let metadata = std::fs::metadata(folder)?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    let sticky = metadata.mode() & 0o1000 != 0;
    if metadata.mode() & 0o022 != 0 && !sticky {
        return Err(io::Error::other(
            "others may write to its folder; chmod go-w it, or use a folder of your own",
        ));
    }
    if !ours && !sticky {
        return Err(io::Error::other(
            "its folder belongs to someone else; use a folder of your own",
        ));
    }
    Ok(())
}

/// Removes what a killed server left behind; anything that is not a socket stays.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::other(
            "something that is not a socket is in the way",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("stdio://"),
            Self::Unix(None) => f.write_str("unix://"),
            Self::Unix(Some(path)) => write!(f, "unix://{}", path.display()),
            Self::Websocket(address) => write!(f, "ws://{address}"),
            Self::Off => f.write_str("off"),
        }
    }
}
