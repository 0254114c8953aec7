//! What every transport looks like from above.

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::{DataLoss, Outgoing, connect, websocket};

/// A peer, whatever carries its messages.
#[derive(Debug)]
pub struct Connection {
    /// Who it is.
    pub peer: Peer,
    /// What it sends.
    pub incoming: Incoming,
    /// What goes to it.
    pub outgoing: Outgoing,
    /// What did not get through.
    pub loss: DataLoss,
}

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// How it is connected.
    pub transport: Transport,
    /// Who it was authenticated as: a token's subject, a user id, or nothing for a parent process.
    pub principal: Option<Box<str>>,
}

/// How a peer is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The process that started us.
    Stdio,
    /// A websocket over TCP.
    Websocket,
    /// A websocket over a unix socket.
    Unix,
    /// Inside this process.
    Memory,
    /// Another process of the same home, for a client of its own.
    Relay,
}

/// What came off the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message, or what claims to be one.
    Message(Bytes),
    /// A line over the cap; it was skipped.
    TooLong,
    /// A binary websocket frame; it was skipped.
    Binary,
}

/// The frames of a peer, in order.
#[derive(Debug)]
pub enum Incoming {
    /// Batches from a reader thread or an in-memory peer.
    Batches(Batches),
    /// A websocket.
    Websocket(Box<websocket::WebsocketReader>),
    /// A websocket that we opened.
    ClientWebsocket(Box<connect::ClientReader>),
}

impl Incoming {
    /// The next frame, or nothing when the peer is gone.
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

/// Frames, and the room they take up with whoever read them, given back when they are used up.
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
            let Batch {
                frames,
                permit: room,
            } = self.receiver.recv().await?;
            self.current = frames.into_iter();
            self.permit = room;
        }
    }
}
