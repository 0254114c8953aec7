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

use crate::socket::SocketPath;
use crate::socket_stream::RawSocket;
use crate::websocket::PING_INTERVAL;
use crate::{
    Close, Connection, ConnectionLimits, DataLoss, Frame, Incoming, Outgoing, Peer, Transport,
    WriterStep,
};

/// Maximum silence of a server, pings included. A client that only listens has no other way to
/// detect a vanished machine.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3 * PING_INTERVAL.as_secs());

/// Reason why no websocket was opened.
#[derive(Debug, thiserror::Error)]
pub enum WebsocketConnectError {
    /// The address is invalid or not supported.
    #[error("{0}")]
    Address(String),
    /// The server does not accept the connection or does not answer.
    #[error("{0}")]
    Unreachable(#[from] io::Error),
    /// The server rejected the upgrade.
    #[error("refused with status {status}: {body}")]
    Refused {
        /// HTTP status code of the response.
        status: u16,
        /// The body of the response.
        body: String,
    },
    /// The peer does not speak the websocket protocol.
    #[error("not a websocket server: {0}")]
    NoWebsocket(String),
}

/// Opens a websocket to an address such as `ws://127.0.0.1:4500`, with a bearer token if the server
/// requires one.
pub async fn connect(
    url: &str,
    token: Option<&str>,
    limits: ConnectionLimits,
) -> Result<Connection, WebsocketConnectError> {
    let address: Uri = url.parse().map_err(|error| {
        WebsocketConnectError::Address(format!("{url} is not an address: {error}"))
    })?;
    if address.scheme_str() != Some("ws") {
        let message = format!(
            "{url} is not a ws:// address; for one behind TLS, open a tunnel to it and use that"
        );
        return Err(WebsocketConnectError::Address(message));
    }
    let Some(host) = address.host() else {
        return Err(WebsocketConnectError::Address(format!(
            "{url} names no host"
        )));
    };
    let address_and_port = (
        host.trim_matches(['[', ']']),
        address.port_u16().unwrap_or(80),
    );
    let websocket = async {
        let stream = TcpStream::connect(address_and_port).await?;
        stream.set_nodelay(true)?;
        upgrade(RawSocket::Tcp(stream), url, token, limits).await
    };
    let peer = Peer {
        transport: Transport::Websocket,
        principal: None,
    };
    open_with_timeout(websocket, peer, limits).await
}

/// Opens a websocket over a unix socket.
pub async fn connect_unix(
    path: &Path,
    limits: ConnectionLimits,
) -> Result<Connection, WebsocketConnectError> {
    let websocket = async {
        let socket_path = SocketPath::of(path)?;
        let stream = UnixStream::connect(&socket_path.path).await?;
        upgrade(RawSocket::Unix(stream), "ws://localhost/", None, limits).await
    };
    let peer = Peer {
        transport: Transport::Unix,
        principal: None,
    };
    open_with_timeout(websocket, peer, limits).await
}

async fn open_with_timeout(
    websocket: impl Future<Output = Result<WebSocketStream<RawSocket>, WebsocketConnectError>>,
    peer: Peer,
    limits: ConnectionLimits,
) -> Result<Connection, WebsocketConnectError> {
    let stream = timeout(limits.handshake, websocket)
        .await
        .map_err(|elapsed| WebsocketConnectError::Unreachable(elapsed.into()))??;
    let (writer, reader) = stream.split();
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    let loss = DataLoss::default();
    let (queue, data_loss) = (outgoing.clone(), loss.clone());
    tokio::spawn(async move {
        if let Err(error) = write(writer, &queue, limits.write).await {
            tracing::debug!(%error, "websocket write failed");
            data_loss.note(format!("data for the server is lost: {error}"));
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
            WebsocketConnectError::Address(
                "the token has characters that a header cannot carry".into(),
            )
        })?;
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits.message_bytes_max))
        .max_frame_size(Some(limits.message_bytes_max));
    match client_async_with_config(request, socket, Some(config)).await {
        Ok((stream, _)) => Ok(stream),
        Err(tungstenite::Error::Http(response)) => {
            let body = response.body().as_deref().unwrap_or_default();
            Err(WebsocketConnectError::Refused {
                status: response.status().as_u16(),
                body: String::from_utf8_lossy(body).trim().to_owned(),
            })
        }
        Err(tungstenite::Error::Io(error)) => Err(error.into()),
        Err(error) => Err(WebsocketConnectError::NoWebsocket(error.to_string())),
    }
}

/// The reading half of a client's websocket.
#[derive(Debug)]
pub struct ClientReader {
    reader: SplitStream<WebSocketStream<RawSocket>>,
    outgoing: Outgoing,
}

impl ClientReader {
    /// Returns the next frame, or `None` when the server is gone.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            let Ok(next) = timeout(IDLE_TIMEOUT, self.reader.next()).await else {
                tracing::debug!("the server sent nothing in time");
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
    write_timeout: Duration,
) -> Result<(), tungstenite::Error> {
    let mut batch: Vec<Bytes> = Vec::new();
    let close = loop {
        let step = queue.take(&mut batch).await;
        let sent = async {
            for frame in batch.drain(..) {
                let text = Utf8Bytes::try_from(frame)
                    .map_err(|error| tungstenite::Error::Utf8(error.to_string()))?;
                writer.feed(Message::Text(text)).await?;
            }
            writer.flush().await
        };
        timeout(write_timeout, sent)
            .await
            .map_err(io::Error::from)??;
        if let WriterStep::Closed(close) = step {
            break close;
        }
    };
    let frame = CloseFrame {
        code: close.code.into(),
        reason: Utf8Bytes::from(close.reason.into_owned()),
    };
    let close_handshake = async {
        writer.send(Message::Close(Some(frame))).await?;
        writer.close().await
    };
    timeout(write_timeout, close_handshake)
        .await
        .map_err(io::Error::from)?
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_tungstenite::accept_async;

    use super::*;

    #[tokio::test]
    async fn a_silent_server_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("ws://{}", listener.local_addr().expect("an address"));
        let server = async { accept_async(listener.accept().await.expect("a caller").0).await };
        let (server, connection) =
            tokio::join!(server, connect(&url, None, ConnectionLimits::default()));
        let _silent = server.expect("a handshake");
        let mut connection = connection.expect("a websocket");
        tokio::time::pause();
        let started = tokio::time::Instant::now();
        assert!(connection.incoming.next().await.is_none());
        assert!(started.elapsed() >= IDLE_TIMEOUT);
    }
}
