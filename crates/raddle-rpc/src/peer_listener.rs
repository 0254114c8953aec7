//! The way between processes that share a home: each has a unix socket of its own, with a message per line.
//!
//! Whoever comes says first which words it speaks and for whom it comes. Whoever has the socket answers with
//! its own words, or with why it takes nothing.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
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
use crate::socket_stream::{RawSocket, SocketStream, WriteError};
use crate::{
    Connection, ConnectionLimits, DataLoss, Frame, Incoming, LineCodec, Outgoing, Peer, Transport,
    WriterStep,
};

/// The words of this way. A process that speaks others is refused.
const RELAY: u32 = 1;

/// The longest path that a socket's address takes.
const ADDRESS_BYTES_MAX: usize = 107;

/// How many batches of lines may wait to be taken.
const BATCHES: usize = 4;

/// The longest message between processes: each has bounds of its own for what it takes from clients and for
/// what it answers, and these need not be the same.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The longest greeting.
const HELLO_BYTES_MAX: usize = 16 << 10;

/// How long a process may take to greet.
const HELLO_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a hatch waits after the system could not give it another descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is written at once.
const COALESCE_BYTES_MAX: usize = 64 << 10;

/// The first line of whoever comes.
#[derive(Debug, Serialize, Deserialize)]
struct Hello {
    relay: u32,
    version: String,
    principal: Option<Box<str>>,
}

/// The first line of whoever is there.
#[derive(Debug, Serialize, Deserialize)]
struct Welcome {
    relay: u32,
    version: String,
    /// Why nothing is taken.
    refused: Option<String>,
}

/// Why another process cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Nobody is there, or nobody answers.
    #[error("it does not answer: {0}")]
    NotThere(#[from] io::Error),
    /// It does not take what we would send.
    #[error("{0}")]
    Refused(String),
}

/// Where other processes of the home come in.
#[derive(Debug)]
pub struct PeerListener {
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
}

impl PeerListener {
    /// Makes the socket, for its owner only. Nobody else has this path.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(folder)?;
            std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
        }
        let near = SocketPath::of(path)?;
        let listener = std::os::unix::net::UnixListener::bind(&near.path)?;
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Hands on whoever comes, until nobody takes them any more. `version` is that of this program.
    pub async fn serve(self, version: &'static str, taken: mpsc::Sender<Connection>) {
        let listener = match self.listener.try_clone().and_then(UnixListener::from_std) {
            Ok(listener) => listener,
            Err(error) => return tracing::warn!(%error, "other processes cannot come in"),
        };
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = taken.closed() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(accept_peer(stream, version, taken.clone()));
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
        // Left behind it does no harm: nobody listens there.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn accept_peer(mut stream: UnixStream, version: &str, taken: mpsc::Sender<Connection>) {
    let ours = rustix::process::geteuid().as_raw();
    match stream.peer_cred() {
        Ok(it) if it.uid() == ours || it.uid() == 0 => {}
        _ => return tracing::warn!("another user's process refused"),
    }
    let mut lines = LineCodec::new(HELLO_BYTES_MAX);
    let Ok(Ok(Some(hello))) =
        timeout(HELLO_TIMEOUT, greeting::<Hello>(&mut stream, &mut lines)).await
    else {
        return tracing::info!("a process that did not greet refused");
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
    // Only who is sure to be served is welcomed.
    let Ok(place) = taken.reserve().await else {
        return;
    };
    if greet(&mut stream, &welcome).await.is_err() || is_refused {
        return;
    }
    place.send(connection(
        stream,
        lines,
        hello.principal,
        ConnectionLimits::default(),
    ));
}

/// Goes to the process that has this socket, for a client of this name.
pub async fn dial(
    path: &Path,
    version: &str,
    principal: Option<&str>,
) -> Result<Connection, DialError> {
    let near = SocketPath::of(path)?;
    let hello = Hello {
        relay: RELAY,
        version: version.to_owned(),
        principal: principal.map(Into::into),
    };
    let mut lines = LineCodec::new(HELLO_BYTES_MAX);
    let greeted = async {
        let mut stream = UnixStream::connect(&near.path).await?;
        greet(&mut stream, &hello).await?;
        let welcome = greeting::<Welcome>(&mut stream, &mut lines).await?;
        Ok((stream, welcome))
    };
    let greeted: io::Result<_> = timeout(HELLO_TIMEOUT, greeted)
        .await
        .map_err(io::Error::from)?;
    let (stream, welcome) = greeted?;
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
            "the process greets in words that are not known; use the same version everywhere"
                .to_owned(),
        )),
    }
}

async fn greet<T: Serialize>(stream: &mut UnixStream, said: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    stream.write_all(&line).await
}

/// The first line; nothing if it means nothing.
async fn greeting<T: for<'a> Deserialize<'a>>(
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
    mut greeted: LineCodec,
    principal: Option<Box<str>>,
    limits: ConnectionLimits,
) -> Connection {
    let mut lines = LineCodec::new(MESSAGE_BYTES_MAX);
    lines.buffer().unsplit(greeted.buffer().split());
    let mut line = SocketStream::new(RawSocket::Unix(stream));
    let outgoing = Outgoing::new(limits.outgoing_bytes_max);
    let loss = DataLoss::default();
    let (sender, receiver) = mpsc::channel(BATCHES);
    tokio::spawn(read(line.clone(), lines, sender));
    let (queue, lost) = (outgoing.clone(), loss.clone());
    tokio::spawn(async move {
        if let Err(error) = write(&mut line, &queue, limits.write).await {
            tracing::info!(%error, "what was for another process is lost");
            lost.note(format!("what was for another process is lost: {error}"));
        }
        queue.mark_gone();
        let _ = line.shutdown().await;
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
        let room = None;
        if !frames.is_empty()
            && sender
                .send(Batch {
                    frames,
                    permit: room,
                })
                .await
                .is_err()
        {
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

async fn write(line: &mut SocketStream, queue: &Outgoing, patience: Duration) -> io::Result<()> {
    let mut batch: Vec<Bytes> = Vec::new();
    let mut text = Vec::new();
    while let WriterStep::Frames = queue.take(&mut batch).await {
        for frame in batch.drain(..) {
            text.extend_from_slice(&frame);
            text.push(b'\n');
            if text.len() >= COALESCE_BYTES_MAX {
                put(line, &mut text, patience).await?;
            }
        }
        put(line, &mut text, patience).await?;
    }
    Ok(())
}

/// Writes all of it. The other process reads as slowly as its client does, and is waited for as long as it takes
/// something.
async fn put(line: &mut SocketStream, text: &mut Vec<u8>, patience: Duration) -> io::Result<()> {
    // What is written at once counts as taken only when all of it is.
    for piece in text.chunks(COALESCE_BYTES_MAX) {
        line.write_within(piece, patience)
            .await
            .map_err(|why| match why {
                WriteError::Failed(error) => error,
                WriteError::NotRead(_) => {
                    let why = format!("it took nothing for {patience:?}");
                    io::Error::new(io::ErrorKind::TimedOut, why)
                }
            })?;
    }
    text.clear();
    Ok(())
}

/// A path that fits into a socket's address.
pub(crate) struct SocketPath {
    pub(crate) path: PathBuf,
    /// The folder, kept open while the path leads through it.
    _folder: Option<std::fs::File>,
}

impl SocketPath {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other("that is not the name of a socket"));
        };
        if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES_MAX {
            return Ok(Self {
                path: path.to_owned(),
                _folder: None,
            });
        }
        let folder = std::fs::File::open(folder)?;
        let near = format!("/proc/self/fd/{}", folder.as_raw_fd());
        Ok(Self {
            path: Path::new(&near).join(name),
            _folder: Some(folder),
        })
    }
}

#[cfg(test)]
mod tests;
