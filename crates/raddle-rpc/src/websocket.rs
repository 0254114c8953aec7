//! A websocket after its upgrade.
//!
//! The library only reads; writing is done here. The library would answer a close at once and
//! discard the frames that are still queued for the peer.

mod pongs;
mod writer;

pub(crate) use self::writer::PING_INTERVAL;

use futures_util::StreamExt;
use hyper::upgrade::Upgraded;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use self::pongs::Pongs;
use self::writer::WebsocketWriter;
use crate::socket_stream::{ReadOnlySocket, SocketStream};
use crate::{Close, Connection, ConnectionLimits, DataLoss, Frame, Incoming, Outgoing, Peer};

/// Returns the connection of an upgraded socket, if its type is supported. Also returns its writer,
/// which may hold the socket for a while longer than the connection.
pub(crate) async fn open(
    upgraded: Upgraded,
    peer: Peer,
    limits: ConnectionLimits,
) -> Option<(Connection, JoinHandle<()>)> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits.message_bytes_max))
        .max_frame_size(Some(limits.message_bytes_max))
        .read_buffer_size(32 << 10);
    let (socket, buffered) = SocketStream::of(upgraded)?;
    let reader = ReadOnlySocket::of(&socket);
    let stream =
        WebSocketStream::from_partially_read(reader, buffered.into(), Role::Server, Some(config))
            .await;
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    let pongs = Pongs::default();
    let loss = DataLoss::default();
    let writer = WebsocketWriter::new(socket, pongs.clone(), limits.write);
    let writer = tokio::spawn(writer.run(outgoing.clone(), loss.clone()));
    let connection = Connection {
        peer,
        incoming: Incoming::Websocket(Box::new(WebsocketReader {
            stream,
            outgoing: outgoing.clone(),
            pongs,
        })),
        outgoing,
        loss,
    };
    Some((connection, writer))
}

/// The reading half of a websocket.
#[derive(Debug)]
pub struct WebsocketReader {
    stream: WebSocketStream<ReadOnlySocket>,
    outgoing: Outgoing,
    pongs: Pongs,
}

impl WebsocketReader {
    /// Returns the next frame, or `None` when the peer is gone. A websocket ends in both directions
    /// at once: the peer receives only what is queued by then.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            let Some(message) = self.stream.next().await else {
                self.outgoing.close(Close::NORMAL);
                return None;
            };
            return Some(match message {
                Ok(Message::Text(text)) => Frame::Message(text.into()),
                Ok(Message::Binary(_)) => Frame::Binary,
                Ok(Message::Ping(payload)) => {
                    self.pongs.set(payload);
                    continue;
                }
                Ok(Message::Close(frame)) => {
                    self.outgoing.close(close_reply(frame));
                    return None;
                }
                Ok(Message::Pong(_) | Message::Frame(_)) => continue,
                Err(error) => {
                    tracing::debug!(%error, "websocket ended");
                    self.outgoing.close(close_for(&error));
                    return None;
                }
            });
        }
    }
}

/// The response to a peer's close: its own code.
fn close_reply(frame: Option<CloseFrame>) -> Close {
    Close {
        code: frame.map_or(1000, |frame| frame.code.into()),
        ..Close::NORMAL
    }
}

/// The close code for a failed read.
fn close_for(error: &Error) -> Close {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => Close::TOO_LONG,
        Error::Utf8(_) => Close::NOT_TEXT,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Close::NORMAL,
        Error::Protocol(_) => Close::PROTOCOL,
        _ => Close::NORMAL,
    }
}
