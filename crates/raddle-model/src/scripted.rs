//! A vendor that answers by a script: a real HTTP server that serves every
//! [`WireFormat`](crate::WireFormat), for tests and for programs that embed Raddle.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use raddle_model::scripted::{ModelScript, ScriptedServer};
//! use raddle_model::{CallTimeouts, ModelClient, ResponsesRequest, StreamEvent};
//!
//! let script = ModelScript::parse("[[answer]]\nsteps = [{ text = 'hello' }]")?;
//! let server = ScriptedServer::listen("127.0.0.1:0".parse()?, script).await?;
//! let endpoint = server.base_url().parse()?;
//! let request = ResponsesRequest::default();
//! let client = ModelClient::new();
//! let mut stream = client.responses(&endpoint, &request, CallTimeouts::default()).await?;
//! let mut answer = String::new();
//! while let Some(event) = stream.next().await? {
//!     if let StreamEvent::Text { text, .. } = event {
//!         answer.push_str(&text);
//!     }
//! }
//! assert_eq!(answer, "hello");
//! assert_eq!(server.requests().len(), 1);
//! # Ok(())
//! # }
//! ```

mod access;
mod answer_body;
mod call_input;
mod fault;
mod instance;
mod marker;
mod play;
mod routes;
mod script;

pub use routes::RecordedCall;
pub use script::{ModelScript, ScriptError};

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use self::routes::ScriptedState;
use crate::io::{Dial, DialFuture, Io};

/// Buffer of a connection in memory, in each direction.
const MEMORY_BYTES: usize = 64 << 10;

/// A running server. Dropping it closes all connections.
#[derive(Debug)]
pub struct ScriptedServer {
    base_url: String,
    state: Arc<ScriptedState>,
    serving: AbortHandle,
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls of the model.
    pub calls: u64,
    /// Connections accepted since the start.
    pub connections: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Answers that wait to be released.
    pub held: u64,
}

impl ScriptedServer {
    /// Listens on an address. Port 0 selects a free one.
    pub async fn listen(address: SocketAddr, script: ModelScript) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let state = ScriptedState::new(script, !address.ip().is_loopback());
        Ok(Self::start(base_url, ConnSource::Tcp(listener), state))
    }

    /// Listens in memory: the [`Dial`] connects to it, whatever the address. Nothing here waits for
    /// the system, so that a test can stop the clock.
    pub fn in_memory(script: ModelScript) -> (Self, Arc<dyn Dial>) {
        let (sender, receiver) = mpsc::channel(1);
        let base_url = "http://memory/v1".to_owned();
        let server = Self::start(
            base_url,
            ConnSource::Memory(receiver),
            ScriptedState::new(script, true),
        );
        (server, Arc::new(MemoryDial(sender)))
    }

    fn start(base_url: String, source: ConnSource, scripted: ScriptedState) -> Self {
        let state = Arc::new(scripted);
        let serving = tokio::spawn(serve(source, state.clone())).abort_handle();
        Self {
            base_url,
            state,
            serving,
        }
    }

    /// Returns the `base_url` for a provider.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns the received calls, the oldest first. Of many, only the newest are kept.
    pub fn requests(&self) -> Vec<RecordedCall> {
        self.state.calls()
    }

    /// Releases so many held answers, now or when they come to be held.
    pub fn release(&self, answers: usize) {
        self.state.release(answers);
    }

    /// Returns the current values of the counters.
    pub fn counts(&self) -> CallCounts {
        *self.state.counts().borrow()
    }

    /// Waits until the counters satisfy a condition.
    pub async fn until(&self, condition: impl FnMut(&CallCounts) -> bool) {
        // `self` owns the sender, so the channel stays open.
        let _ = self.state.counts().wait_for(condition).await;
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

enum ConnSource {
    Tcp(TcpListener),
    Memory(mpsc::Receiver<Box<dyn Io>>),
}

impl ConnSource {
    async fn next(&mut self) -> Option<io::Result<Box<dyn Io>>> {
        match self {
            Self::Tcp(listener) => Some(listener.accept().await.and_then(|(stream, _)| {
                stream.set_nodelay(true)?;
                Ok(Box::new(stream) as Box<dyn Io>)
            })),
            Self::Memory(receiver) => receiver.recv().await.map(Ok),
        }
    }
}

async fn serve(mut source: ConnSource, state: Arc<ScriptedState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            came = source.next() => match came {
                Some(Ok(io)) => drop(connections.spawn(routes::serve(io, state.clone()))),
                // No descriptor is free until a connection ends.
                Some(Err(_)) => drop(connections.join_next().await),
                None => break,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Connects to a server in memory.
struct MemoryDial(mpsc::Sender<Box<dyn Io>>);

impl fmt::Debug for MemoryDial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memory")
    }
}

impl Dial for MemoryDial {
    fn dial<'a>(&'a self, _: &'a str, _: u16) -> DialFuture<'a> {
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(MEMORY_BYTES);
            let result = self.0.send(Box::new(theirs)).await;
            result.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
            Ok(Box::new(ours) as Box<dyn Io>)
        })
    }
}

/// Counters that tests can wait for.
type CountsSender = watch::Sender<CallCounts>;
