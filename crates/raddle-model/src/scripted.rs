//! A vendor that says what a script tells it: a real HTTP server that speaks every [`Wire`](crate::Wire), for
//! tests and for whoever embeds Raddle.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use raddle_model::scripted::{Script, Server};
//! use raddle_model::{Client, Event, Limits, Request};
//!
//! let server = Server::listen("127.0.0.1:0".parse()?, Script::parse("[[answer]]\nsteps = [{ text = 'hello' }]")?).await?;
//! let endpoint = server.base_url().parse()?;
//! let mut stream = Client::new().responses(&endpoint, &Request::default(), Limits::default()).await?;
//! let mut said = String::new();
//! while let Some(event) = stream.next().await? {
//!     if let Event::Text { text, .. } = event {
//!         said.push_str(&text);
//!     }
//! }
//! assert_eq!(said, "hello");
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

/// How much a connection in memory holds in each direction.
const MEMORY_BYTES: usize = 64 << 10;

/// A running server. Dropping it closes everything.
#[derive(Debug)]
pub struct ScriptedServer {
    base_url: String,
    state: Arc<ScriptedState>,
    serving: AbortHandle,
}

/// What a server has been asked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls of the model.
    pub calls: u64,
    /// Connections that came.
    pub connections: u64,
    /// Of these, open now.
    pub open: u64,
    /// Answers that wait to be released.
    pub held: u64,
}

impl ScriptedServer {
    /// Listens on an address. Port 0 takes any that is free.
    pub async fn listen(address: SocketAddr, script: ModelScript) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let room = ScriptedState::new(script, !address.ip().is_loopback());
        Ok(Self::start(base_url, ConnSource::Tcp(listener), room))
    }

    /// Listens in memory: whoever has the [`Dial`] is connected, whatever the address. Nothing here waits
    /// for the system, so that a test can stop the clock.
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

    fn start(base_url: String, door: ConnSource, room: ScriptedState) -> Self {
        let state = Arc::new(room);
        let serving = tokio::spawn(serve(door, state.clone())).abort_handle();
        Self {
            base_url,
            state,
            serving,
        }
    }

    /// What to write as a provider's `base_url`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The calls that came, the oldest first. Of many, only the newest are kept.
    pub fn requests(&self) -> Vec<RecordedCall> {
        self.state.calls()
    }

    /// Lets so many held answers go on, now or when they come to be held.
    pub fn release(&self, answers: usize) {
        self.state.release(answers);
    }

    /// What it has been asked so far.
    pub fn counts(&self) -> CallCounts {
        *self.state.counts().borrow()
    }

    /// Waits until the counts are as wanted.
    pub async fn until(&self, wanted: impl FnMut(&CallCounts) -> bool) {
        // The room that counts lives as long as we do.
        let _ = self.state.counts().wait_for(wanted).await;
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Where connections come from.
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

async fn serve(mut door: ConnSource, room: Arc<ScriptedState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            came = door.next() => match came {
                Some(Ok(io)) => drop(connections.spawn(routes::serve(io, room.clone()))),
                // No descriptor is free; one is when a connection ends.
                Some(Err(_)) => drop(connections.join_next().await),
                None => break,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    while connections.join_next().await.is_some() {}
}

/// The way to a server in memory.
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
            let sent = self.0.send(Box::new(theirs)).await;
            sent.map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
            Ok(Box::new(ours) as Box<dyn Io>)
        })
    }
}

/// Counts that others can wait for.
type CountsSender = watch::Sender<CallCounts>;
