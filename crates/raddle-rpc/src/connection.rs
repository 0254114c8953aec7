//! The common interface of all transports.

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::{DataLoss, Outgoing, connect, websocket};

/// A connection to a peer over any transport.
#[derive(Debug)]
pub struct Connection {
    /// Identity and transport of the peer.
    pub peer: Peer,
    /// Frames from the peer.
    pub incoming: Incoming,
    /// Queue of frames to the peer.
    pub outgoing: Outgoing,
    /// Data that could not be delivered.
    pub loss: DataLoss,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Transport of the connection.
    pub transport: Transport,
    /// Authenticated identity: a token's subject or a user id. `None` for a parent process.
    pub principal: Option<Box<str>>,
}

/// Transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Stdin and stdout of this process.
    Stdio,
    /// A websocket over TCP.
    Websocket,
    /// A websocket over a unix socket.
    Unix,
    /// A queue within this process.
    Memory,
    /// A process with the same home directory that forwards one of its clients.
    Relay,
}

/// A unit received from a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message, not parsed yet.
    Message(Bytes),
    /// A line over the limit; it was skipped.
    TooLong,
    /// A binary websocket frame; it was skipped.
    Binary,
}

/// Frames of a peer, in order.
#[derive(Debug)]
pub enum Incoming {
    /// Batches from a reader thread or an in-memory peer.
    Batches(Batches),
    /// The server's end of a websocket.
    Websocket(Box<websocket::WebsocketReader>),
    /// The client's end of a websocket.
    ClientWebsocket(Box<connect::ClientReader>),
}

impl Incoming {
    /// Returns the next frame, or `None` when the peer is gone.
    pub async fn next(&mut self) -> Option<Frame> {
        match self {
            Self::Batches(batches) => batches.next().await,
            Self::Websocket(reader) => reader.next().await,
            Self::ClientWebsocket(reader) => reader.next().await,
        }
    }
}

/// Frames that arrive several at a time.
#[derive(Debug)]
pub struct Batches {
    receiver: mpsc::Receiver<Batch>,
    current: std::vec::IntoIter<Frame>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Frames, and the reader's capacity that they occupy. Dropping the permit frees it.
#[derive(Debug)]
pub(crate) struct Batch {
    pub frames: Vec<Frame>,
    pub permit: Option<OwnedSemaphorePermit>,
}

impl Batches {
    pub(crate) fn new(receiver: mpsc::Receiver<Batch>) -> Self {
        Self {
            receiver,
            current: Vec::new().into_iter(),
            permit: None,
        }
    }

    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.current.next() {
                return Some(frame);
            }
            self.permit = None;
            let Batch { frames, permit } = self.receiver.recv().await?;
            self.current = frames.into_iter();
            self.permit = permit;
        }
    }
}
