//! The client's side of a websocket, over TCP or over a unix socket.

use std::io;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::http::{Request, Uri};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::peer_listener::SocketPath;
use crate::socket_stream::RawSocket;
use crate::websocket::PING_INTERVAL;
use crate::{
    Close, Connection, ConnectionLimits, DataLoss, Frame, Incoming, Outgoing, Peer, Transport,
    WriterStep,
};

/// How long a server may be silent, pings included, before it counts as gone: nothing else tells of a machine that
/// vanished while we only listen.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3 * PING_INTERVAL.as_secs());

/// Why no websocket came about.
#[derive(Debug, thiserror::Error)]
pub enum WebsocketConnectError {
    /// That is not an address, or not one that can be reached from here.
    #[error("{0}")]
    Address(String),
    /// Nobody is there, or nobody answers.
    #[error("{0}")]
    NotThere(#[from] io::Error),
    /// Whoever is there does not let us in: this status, and what was said.
    #[error("refused with status {status}: {said}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The body of the answer.
        said: String,
    },
    /// Whoever is there speaks something else.
    #[error("no websocket: {0}")]
    NoWebsocket(String),
}

/// A websocket at an address such as `ws://127.0.0.1:4500`, with a bearer token if the server asks for one.
pub async fn connect(
    url: &str,
    token: Option<&str>,
    limits: ConnectionLimits,
) -> Result<Connection, WebsocketConnectError> {
    let address: Uri = url
        .parse()
        .map_err(|error| WebsocketConnectError::Address(format!("{url} is no address: {error}")))?;
    if address.scheme_str() != Some("ws") {
        let what = format!(
            "{url} is not a ws:// address; for one behind TLS, open a tunnel to it and use that"
        );
        return Err(WebsocketConnectError::Address(what));
    }
    let Some(host) = address.host() else {
        return Err(WebsocketConnectError::Address(format!(
            "{url} names no host"
        )));
    };
    let place = (
        host.trim_matches(['[', ']']),
        address.port_u16().unwrap_or(80),
    );
    let opened = async {
        let stream = TcpStream::connect(place).await?;
        stream.set_nodelay(true)?;
        upgrade(RawSocket::Tcp(stream), url, token, limits).await
    };
    let peer = Peer {
        transport: Transport::Websocket,
        principal: None,
    };
    opened_in_time(opened, peer, limits).await
}

/// A websocket on a unix socket.
pub async fn connect_unix(
    path: &Path,
    limits: ConnectionLimits,
) -> Result<Connection, WebsocketConnectError> {
    let opened = async {
        let near = SocketPath::of(path)?;
        let stream = UnixStream::connect(&near.path).await?;
        upgrade(RawSocket::Unix(stream), "ws://localhost/", None, limits).await
    };
    let peer = Peer {
        transport: Transport::Unix,
        principal: None,
    };
    opened_in_time(opened, peer, limits).await
}

async fn opened_in_time(
    opened: impl Future<Output = Result<WebSocketStream<RawSocket>, WebsocketConnectError>>,
    peer: Peer,
    limits: ConnectionLimits,
) -> Result<Connection, WebsocketConnectError> {
    let stream = timeout(limits.handshake, opened)
        .await
        .map_err(|late| WebsocketConnectError::NotThere(late.into()))??;
    let (writer, reader) = stream.split();
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    let loss = DataLoss::default();
    let (queue, lost) = (outgoing.clone(), loss.clone());
    tokio::spawn(async move {
        if let Err(error) = write(writer, &queue, limits.write).await {
            tracing::debug!(%error, "the websocket takes nothing more");
            lost.note(format!("what was for the server is lost: {error}"));
        }
        queue.mark_gone();
    });
    Ok(Connection {
        peer,
        incoming: Incoming::ClientWebsocket(Box::new(ClientReader {
            reader,
            outgoing: outgoing.clone(),
        })),
        outgoing,
        loss,
    })
}

async fn upgrade(
    socket: RawSocket,
    url: &str,
    token: Option<&str>,
    limits: ConnectionLimits,
) -> Result<WebSocketStream<RawSocket>, WebsocketConnectError> {
    let mut request: Request<()> = url
        .into_client_request()
        .map_err(|error| WebsocketConnectError::Address(error.to_string()))?;
    if let Some(token) = token {
        let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
            WebsocketConnectError::Address("the token has characters no header takes".into())
        })?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits.message_bytes_max))
        .max_frame_size(Some(limits.message_bytes_max));
    match client_async_with_config(request, socket, Some(config)).await {
        Ok((stream, _)) => Ok(stream),
        Err(tungstenite::Error::Http(answer)) => {
            let said = answer.body().as_deref().unwrap_or_default();
            Err(WebsocketConnectError::Refused {
                status: answer.status().as_u16(),
                said: String::from_utf8_lossy(said).trim().to_owned(),
            })
        }
        Err(tungstenite::Error::Io(error)) => Err(error.into()),
        Err(error) => Err(WebsocketConnectError::NoWebsocket(error.to_string())),
    }
}

/// The reading half of a websocket that we opened.
#[derive(Debug)]
pub struct ClientReader {
    reader: SplitStream<WebSocketStream<RawSocket>>,
    outgoing: Outgoing,
}

impl ClientReader {
    /// The next frame, or nothing when the server is gone.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            let Ok(next) = timeout(IDLE_TIMEOUT, self.reader.next()).await else {
                tracing::debug!("the server is silent");
                break;
            };
            match next {
                Some(Ok(Message::Text(text))) => return Some(Frame::Message(text.into())),
                Some(Ok(Message::Binary(_))) => return Some(Frame::Binary),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_))) | None => break,
                Some(Err(error)) => {
                    tracing::debug!(%error, "websocket ended");
                    break;
                }
            }
        }
        self.outgoing.close(Close::NORMAL);
        None
    }
}

async fn write(
    mut writer: SplitSink<WebSocketStream<RawSocket>, Message>,
    queue: &Outgoing,
    patience: Duration,
) -> Result<(), tungstenite::Error> {
    let mut batch: Vec<Bytes> = Vec::new();
    let close = loop {
        let written = queue.take(&mut batch).await;
        let sent = async {
            for frame in batch.drain(..) {
                let text = Utf8Bytes::try_from(frame)
                    .map_err(|error| tungstenite::Error::Utf8(error.to_string()))?;
                writer.feed(Message::Text(text)).await?;
            }
            writer.flush().await
        };
        timeout(patience, sent).await.map_err(io::Error::from)??;
        if let WriterStep::Closed(close) = written {
            break close;
        }
    };
    let frame = CloseFrame {
        code: close.code.into(),
        reason: Utf8Bytes::from(close.reason.into_owned()),
    };
    let goodbye = async {
        writer.send(Message::Close(Some(frame))).await?;
        writer.close().await
    };
    timeout(patience, goodbye).await.map_err(io::Error::from)?
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_tungstenite::accept_async;

    use super::*;

    #[tokio::test]
    async fn a_server_that_is_silent_for_long_counts_as_gone() {
        let door = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("ws://{}", door.local_addr().expect("an address"));
        let server = async { accept_async(door.accept().await.expect("a caller").0).await };
        let (server, connection) =
            tokio::join!(server, connect(&url, None, ConnectionLimits::default()));
        let _silent = server.expect("a handshake");
        let mut connection = connection.expect("a websocket");
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        assert!(connection.incoming.next().await.is_none());
        assert!(begun.elapsed() >= IDLE_TIMEOUT);
    }
}
