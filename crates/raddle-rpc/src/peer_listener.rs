//! Connections between processes with the same home directory: each process listens on its own unix
//! socket, with one message per line.
//!
//! The connecting process first sends its relay version and the principal of its client. The
//! listening process answers with its own version, or with the reason of a rejection.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::connection::{Batch, Batches};
use crate::socket::SocketPath;
use crate::socket_stream::{RawSocket, SocketStream, WriteError};
use crate::{
    Connection, ConnectionLimits, DataLoss, Frame, Incoming, LineCodec, Outgoing, Peer, Transport,
    WriterStep,
};

/// Version of the relay protocol. A process with another version is rejected.
const RELAY: u32 = 1;

/// Maximum number of batches of lines in the channel.
const BATCHES: usize = 4;

/// Limit: a message between processes of one home; beyond it, it is skipped and logged.
///
/// Each process limits its clients and its responses itself, and these limits may differ.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// Maximum length of a greeting.
const HELLO_BYTES_MAX: usize = 16 << 10;

/// Limit: time for another process to send its greeting; beyond it, the process counts as absent.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause after a failed accept, for example when the process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum size of one write.
const COALESCE_BYTES_MAX: usize = 64 << 10;

/// First line of the connecting process.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    relay: u32,
    version: String,
    principal: Option<Box<str>>,
}

/// First line of the listening process.
#[derive(Debug, Serialize, Deserialize)]
struct Welcome {
    relay: u32,
    version: String,
    /// Reason of a rejection.
    refused: Option<String>,
}

/// Reason why the connection to another process failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The process does not accept the connection or does not answer.
    #[error("it does not answer: {0}")]
    Unreachable(#[from] io::Error),
    /// The process rejected the connection.
    #[error("{0}")]
    Refused(String),
}

/// Listener for other processes with the same home directory.
#[derive(Debug)]
pub struct PeerListener {
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
}

impl PeerListener {
    /// Creates the socket, accessible to its owner only. No other process uses this path.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
            std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
        }
        let socket_path = SocketPath::of(path)?;
        let listener = std::os::unix::net::UnixListener::bind(&socket_path.path)?;
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Accepts connections until the receiver is closed. `version` is that of this program.
    pub async fn serve(self, version: &'static str, connections: mpsc::Sender<Connection>) {
        let listener = match self.listener.try_clone().and_then(UnixListener::from_std) {
            Ok(listener) => listener,
            Err(error) => return tracing::warn!(%error, "cannot listen for other processes"),
        };
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = connections.closed() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(accept_peer(stream, version, connections.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept another process");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl Drop for PeerListener {
    fn drop(&mut self) {
        // A file left behind does no harm: nothing listens on it.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn accept_peer(mut stream: UnixStream, version: &str, connections: mpsc::Sender<Connection>) {
    let own_uid = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(it) if it.uid() == own_uid || it.uid() == 0 => {}
        _ => return tracing::warn!("another user's process refused"),
    }
    let mut lines = LineCodec::new(HELLO_BYTES_MAX);
    let Ok(Ok(Some(hello))) = timeout(
        HELLO_TIMEOUT,
        read_greeting::<Hello>(&mut stream, &mut lines),
    )
    .await
    else {
        return tracing::info!("rejected a process that sent no greeting");
    };
    let refused = (hello.relay != RELAY).then(|| {
        format!(
            "the process has version {version} and speaks relay {RELAY}, not {}; use the same version everywhere",
            hello.relay
        )
    });
    let is_refused = refused.is_some();
    let welcome = Welcome {
        relay: RELAY,
        version: version.to_owned(),
        refused,
    };
    // Welcome a process only if its connection is sure to be served.
    let Ok(slot) = connections.reserve().await else {
        return;
    };
    if send_greeting(&mut stream, &welcome).await.is_err() || is_refused {
        return;
    }
    slot.send(connection(
        stream,
        lines,
        hello.principal,
        ConnectionLimits::default(),
    ));
}

/// Connects to the process behind this socket, on behalf of a client with this principal.
pub async fn dial(
    path: &Path,
    version: &str,
    principal: Option<&str>,
) -> Result<Connection, DialError> {
    let socket_path = SocketPath::of(path)?;
    let hello = Hello {
        relay: RELAY,
        version: version.to_owned(),
        principal: principal.map(Into::into),
    };
    let mut lines = LineCodec::new(HELLO_BYTES_MAX);
    let handshake = async {
        let mut stream = UnixStream::connect(&socket_path.path).await?;
        send_greeting(&mut stream, &hello).await?;
        let welcome = read_greeting::<Welcome>(&mut stream, &mut lines).await?;
        Ok((stream, welcome))
    };
    let handshake_result: io::Result<_> = timeout(HELLO_TIMEOUT, handshake)
        .await
        .map_err(io::Error::from)?;
    let (stream, welcome) = handshake_result?;
    match welcome {
        Some(Welcome {
            refused: Some(why), ..
        }) => Err(DialError::Refused(why)),
        Some(Welcome { relay: RELAY, .. }) => {
            Ok(connection(stream, lines, None, ConnectionLimits::default()))
        }
        Some(Welcome { relay, version, .. }) => Err(DialError::Refused(format!(
            "the process has version {version} and speaks relay {relay}, not {RELAY}; use the same version everywhere"
        ))),
        None => Err(DialError::Refused(
            "the process sent an unknown greeting; use the same version everywhere".to_owned(),
        )),
    }
}

async fn send_greeting<T: Serialize>(stream: &mut UnixStream, message: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

/// Reads the first line. Returns `None` if it is malformed.
async fn read_greeting<T: for<'a> Deserialize<'a>>(
    stream: &mut UnixStream,
    lines: &mut LineCodec,
) -> io::Result<Option<T>> {
    loop {
        match lines.next_line() {
            Some(Frame::Message(line)) => return Ok(serde_json::from_slice(&line).ok()),
            Some(_) => return Ok(None),
            None if stream.read_buf(lines.buffer()).await? == 0 => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            None => {}
        }
    }
}

fn connection(
    stream: UnixStream,
    mut hello_codec: LineCodec,
    principal: Option<Box<str>>,
    limits: ConnectionLimits,
) -> Connection {
    let mut lines = LineCodec::new(MESSAGE_BYTES_MAX);
    lines.buffer().unsplit(hello_codec.buffer().split());
    let mut socket = SocketStream::new(RawSocket::Unix(stream));
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    let loss = DataLoss::default();
    let (sender, receiver) = mpsc::channel(BATCHES);
    tokio::spawn(read(socket.clone(), lines, sender));
    let (queue, data_loss) = (outgoing.clone(), loss.clone());
    tokio::spawn(async move {
        if let Err(error) = write(&mut socket, &queue, limits.write).await {
            tracing::info!(%error, "data for another process is lost");
            data_loss.note(format!("data for another process is lost: {error}"));
        }
        queue.mark_gone();
        let _ = socket.shutdown().await;
    });
    Connection {
        peer: Peer {
            transport: Transport::Relay,
            principal,
        },
        incoming: Incoming::Batches(Batches::new(receiver)),
        outgoing,
        loss,
    }
}

async fn read(mut input: SocketStream, mut lines: LineCodec, sender: mpsc::Sender<Batch>) {
    loop {
        let frames: Vec<Frame> = std::iter::from_fn(|| lines.next_line()).collect();
        let permit = None;
        if !frames.is_empty() && sender.send(Batch { frames, permit }).await.is_err() {
            return;
        }
        lines.buffer().reserve(COALESCE_BYTES_MAX);
        tokio::select! {
            read = input.read_buf(lines.buffer()) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            },
            () = sender.closed() => return,
        }
    }
}

async fn write(
    socket: &mut SocketStream,
    queue: &Outgoing,
    write_timeout: Duration,
) -> io::Result<()> {
    let mut batch: Vec<Bytes> = Vec::new();
    let mut text = Vec::new();
    while let WriterStep::Frames = queue.take(&mut batch).await {
        for frame in batch.drain(..) {
            text.extend_from_slice(&frame);
            text.push(b'\n');
            if text.len() >= COALESCE_BYTES_MAX {
                put(socket, &mut text, write_timeout).await?;
            }
        }
        put(socket, &mut text, write_timeout).await?;
    }
    Ok(())
}

/// Writes the whole buffer. Times out only if the peer reads nothing at all, because a peer with a
/// slow client reads slowly.
async fn put(
    socket: &mut SocketStream,
    text: &mut Vec<u8>,
    write_timeout: Duration,
) -> io::Result<()> {
    // A write counts as progress only when it is complete, so large texts are split.
    for piece in text.chunks(COALESCE_BYTES_MAX) {
        socket
            .write_within(piece, write_timeout)
            .await
            .map_err(|why| match why {
                WriteError::Failed(error) => error,
                WriteError::NotRead(_) => {
                    let why = format!("it read nothing for {write_timeout:?}");
                    io::Error::new(io::ErrorKind::TimedOut, why)
                }
            })?;
    }
    text.clear();
    Ok(())
}

#[cfg(test)]
mod tests;
