//! A websocket after its upgrade: frames in, frames out.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::line::Line;
use crate::{Close, Connection, Frame, Incoming, Limits, Outgoing, Peer, Written};

type Socket = WebSocketStream<Line>;

/// How long a closing peer has to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// The connection of a socket whose upgrade is done.
pub(crate) async fn open(upgraded: Upgraded, peer: Peer, limits: Limits) -> Connection {
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits.message_bytes_max))
        .max_frame_size(Some(limits.message_bytes_max))
        .read_buffer_size(32 << 10)
        .write_buffer_size(64 << 10);
    let line = Line::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(line.clone(), Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    tokio::spawn(write(sink, line, outgoing.clone(), limits.write));
    Connection {
        peer,
        incoming: Incoming::Websocket(Reader {
            stream,
            outgoing: outgoing.clone(),
        }),
        outgoing,
    }
}

/// The reading half of a websocket.
#[derive(Debug)]
pub struct Reader {
    stream: SplitStream<Socket>,
    outgoing: Outgoing,
}

impl Reader {
    /// The next frame, or nothing when the peer is gone.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            return Some(match self.stream.next().await? {
                Ok(Message::Text(text)) => Frame::Message(text.into()),
                Ok(Message::Binary(_)) => Frame::Binary,
                // Pings are answered by the library; a close is followed by the end of the stream.
                Ok(_) => continue,
                Err(error) => {
                    tracing::debug!(%error, "websocket ended");
                    if let Some(close) = breach(&error) {
                        self.outgoing.close(close);
                    }
                    return None;
                }
            });
        }
    }
}

/// How the peer broke the rules, if it did and did not just leave.
fn breach(error: &Error) -> Option<Close> {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => Some(Close::TOO_LONG),
        Error::Utf8(_) => Some(Close::NOT_TEXT),
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        Error::Protocol(_) => Some(Close::PROTOCOL),
        _ => None,
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut line: Line,
    outgoing: Outgoing,
    deadline: Duration,
) {
    let mut batch: Vec<Bytes> = Vec::new();
    loop {
        match outgoing.take(&mut batch).await {
            Written::Frames => {
                if let Err(why) = send(&mut sink, &mut batch, deadline).await {
                    tracing::info!(why, "websocket peer is gone");
                    break;
                }
            }
            Written::Closed(close) => {
                let frame = CloseFrame {
                    code: close.code.into(),
                    reason: Utf8Bytes::from(close.reason.as_ref()),
                };
                let goodbye = async {
                    let _ = sink.send(Message::Close(Some(frame))).await;
                    let _ = sink.close().await;
                    line.hang_up().await;
                };
                let _ = timeout(GOODBYE, goodbye).await;
                break;
            }
        }
    }
    outgoing.gone();
}

async fn send(
    sink: &mut SplitSink<Socket, Message>,
    batch: &mut Vec<Bytes>,
    deadline: Duration,
) -> Result<(), &'static str> {
    for frame in batch.drain(..) {
        // Frames are written by serde_json, so this check never fails; it is cheaper than being wrong.
        let Ok(text) = Utf8Bytes::try_from(frame) else {
            continue;
        };
        within(deadline, sink.feed(Message::Text(text))).await?;
    }
    within(deadline, sink.flush()).await
}

async fn within(
    deadline: Duration,
    write: impl Future<Output = Result<(), Error>>,
) -> Result<(), &'static str> {
    match timeout(deadline, write).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err("write failed"),
        Err(_) => Err("write deadline passed"),
    }
}
