//! The address of a server.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use raddle_rpc::{Close, Connection, ConnectionLimits, connect, connect_unix};

use crate::ConnectError;
use crate::child::{self, Child};

/// Maximum length of an incoming message. The server limits its responses itself.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// Address of the server. It is also used to reconnect.
#[derive(Clone)]
pub enum ServerAddress {
    /// A program that is started, and speaks on its stdin and stdout. It exits with the client,
    /// even if the client is killed, because its stdin closes.
    Child(Program),
    /// A server that listens on a websocket.
    WebSocket {
        /// URL of the websocket, for example `ws://127.0.0.1:4500`.
        url: String,
        /// Bearer token, if the server requires one.
        token: Option<String>,
    },
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// A server in this process, or a custom transport.
    Memory(Dialer),
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(program) => f.debug_tuple("Child").field(program).finish(),
            // The token is redacted.
            Self::WebSocket { url, token } => f
                .debug_struct("WebSocket")
                .field("url", url)
                .field("has_token", &token.is_some())
                .finish_non_exhaustive(),
            Self::Unix(path) => f.debug_tuple("Unix").field(path).finish(),
            Self::Memory(dialer) => f.debug_tuple("Memory").field(dialer).finish(),
        }
    }
}

/// A server program and how to start it.
#[derive(Clone)]
pub struct Program {
    /// Path of the executable.
    pub program: PathBuf,
    /// Arguments, for example `app-server`.
    pub args: Vec<OsString>,
    /// Environment variables, in addition to those of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; by default that of this process.
    pub dir: Option<PathBuf>,
    /// Destination of its log.
    pub stderr: Stderr,
}

impl Program {
    /// A program with these arguments, in the directory and environment of this process. Its log is
    /// discarded.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            dir: None,
            stderr: Stderr::Null,
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values are redacted: they may be API keys.
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Program")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("dir", &self.dir)
            .field("stderr", &self.stderr)
            .finish()
    }
}

/// Destination of a child's stderr.
#[derive(Clone)]
pub enum Stderr {
    /// The stderr of this process.
    Inherit,
    /// The output is discarded.
    Null,
    /// A callback that receives each line.
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Null => "Null",
            Self::Lines(_) => "Lines",
        })
    }
}

type DialFuture = Pin<Box<dyn Future<Output = std::io::Result<Connection>> + Send>>;

/// A custom transport: a function that opens a connection to a server. The client calls it for
/// every connection attempt.
///
/// ```
/// use raddle_client::{Client, ConnectionLimits, Dialer, Options, RejectAll, ServerAddress, memory};
/// use raddle_rpc::Frame;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let dialer = Dialer::new(|| async {
///     let (near, mut far) = memory(ConnectionLimits::default());
///     // Here a real program hands `far` to its server; this one greets, and no more.
///     tokio::spawn(async move {
///         while let Some(Frame::Message(message)) = far.incoming.next().await {
///             if message.starts_with(b"{\"id\":1,") {
///                 let hello = br#"{"id": 1, "result": {"codexHome": "/", "platformFamily": "unix",
///                     "platformOs": "linux", "userAgent": "small/1"}}"#;
///                 far.outgoing.send(hello.as_slice().into());
///             }
///         }
///     });
///     Ok(near)
/// });
/// let client = Client::connect(ServerAddress::Memory(dialer), Options::new("doc", "1"), RejectAll).await;
/// let client = client.expect("someone is there");
/// assert_eq!(client.server().user_agent, "small/1");
/// client.close().await;
/// # }
/// ```
#[derive(Clone)]
pub struct Dialer(Arc<dyn Fn() -> DialFuture + Send + Sync>);

impl Dialer {
    /// A transport that this function opens, for example with [`memory`](crate::memory).
    pub fn new<F, D>(dial: F) -> Self
    where
        F: Fn() -> D + Send + Sync + 'static,
        D: Future<Output = std::io::Result<Connection>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(dial())))
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}

/// An open connection, and the child process behind it.
pub(crate) struct ServerLink {
    pub(crate) connection: Connection,
    pub(crate) child: Option<Child>,
}

impl Drop for ServerLink {
    fn drop(&mut self) {
        // The writer of the connection waits for this.
        self.connection.outgoing.close(Close::NORMAL);
    }
}

impl ServerAddress {
    pub(crate) async fn open(&self) -> Result<ServerLink, ConnectError> {
        let limits = ConnectionLimits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            ..ConnectionLimits::default()
        };
        let mut child = None;
        let connection = match self {
            Self::Child(program) => {
                let (connection, started) = child::start(program, limits)?;
                child = Some(started);
                connection
            }
            Self::WebSocket { url, token } => connect(url, token.as_deref(), limits)
                .await
                .map_err(|error| ConnectError::unreachable(url, &error))?,
            Self::Unix(path) => connect_unix(path, limits)
                .await
                .map_err(|error| ConnectError::unreachable(path.display(), &error))?,
            Self::Memory(dialer) => (dialer.0)().await?,
        };
        Ok(ServerLink { connection, child })
    }
}
