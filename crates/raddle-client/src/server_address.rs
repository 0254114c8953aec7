//! Where the server is.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use raddle_rpc::{Close, Connection, ConnectionLimits, connect, connect_unix};

use crate::ConnectError;
use crate::child::{self, Child};

/// The longest message that a client takes. A server bounds its answers itself.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// Where the server is, and how to get there; gone to again when the connection is lost.
#[derive(Clone)]
pub enum ServerAddress {
    /// A program that is started, and speaks on its stdin and stdout. It ends with the client, also when the client
    /// is killed: its stdin ends then.
    Child(Program),
    /// A websocket.
    WebSocket {
        /// Such as `ws://127.0.0.1:4500`.
        url: String,
        /// The bearer token, if the server asks for one.
        token: Option<String>,
    },
    /// A unix socket.
    Unix(PathBuf),
    /// A server in this process, or a way of one's own.
    Memory(Dialer),
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(program) => f.debug_tuple("Child").field(program).finish(),
            // The token is nobody's business.
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

/// A program that is a server.
#[derive(Clone)]
pub struct Program {
    /// The file.
    pub program: PathBuf,
    /// Its arguments, such as `app-server`.
    pub args: Vec<OsString>,
    /// What is set in its environment, beside what this process has in its own.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it is started in; this process's own if there is none.
    pub dir: Option<PathBuf>,
    /// Where its log goes.
    pub stderr: Stderr,
}

impl Program {
    /// A program with these arguments, in the folder and the environment of this process, whose log goes nowhere.
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
        // Values may be keys.
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

/// Where a child's log goes.
#[derive(Clone)]
pub enum Stderr {
    /// Where this process's own goes.
    Inherit,
    /// Nowhere.
    Null,
    /// To this function, a line at a time.
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

/// A way to a server that the caller makes, once for every connection.
///
/// ```
/// use raddle_client::{Client, Dialer, Limits, Options, Place, Refuse, memory};
/// use raddle_rpc::Frame;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let dialer = Dialer::new(|| async {
///     let (near, mut far) = memory(Limits::default());
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
/// let client = Client::connect(Place::Memory(dialer), Options::new("doc", "1"), Refuse).await;
/// let client = client.expect("someone is there");
/// assert_eq!(client.server().user_agent, "small/1");
/// client.close().await;
/// # }
/// ```
#[derive(Clone)]
pub struct Dialer(Arc<dyn Fn() -> DialFuture + Send + Sync>);

impl Dialer {
    /// A way that this function makes, for example with [`memory`](crate::memory).
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

/// A way that was opened.
pub(crate) struct ServerLink {
    pub(crate) connection: Connection,
    pub(crate) child: Option<Child>,
}

impl Drop for ServerLink {
    fn drop(&mut self) {
        // Whoever writes to the server waits for this.
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
            Self::WebSocket { url, token } => connect(url, token.as_deref(), limits).await?,
            Self::Unix(path) => connect_unix(path, limits).await?,
            Self::Memory(dialer) => (dialer.0)().await?,
        };
        Ok(ServerLink { connection, child })
    }
}
