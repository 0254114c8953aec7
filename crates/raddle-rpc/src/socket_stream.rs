//! The byte stream under a websocket. It stays accessible after the websocket has failed.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use rustix::io::Errno;
use rustix::net::send;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

use crate::platform::{SEND_NOW, limit_unsent};

/// Number of checks for progress within a deadline.
const PROGRESS_CHECKS: u32 = 8;

/// A stream that can be shared. The lock is held while bytes are moved, never while waiting.
#[derive(Clone, Debug)]
pub(crate) struct SocketStream(Arc<Mutex<RawSocket>>);

/// The kinds of socket that a websocket can use.
#[derive(Debug)]
pub(crate) enum RawSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Reason why a write is incomplete.
#[derive(Debug)]
pub(crate) enum WriteError {
    Failed(io::Error),
    /// The peer read nothing in time. Holds the number of unwritten bytes.
    NotRead(usize),
}

impl SocketStream {
    pub(crate) fn new(socket: RawSocket) -> Self {
        Self(Arc::new(Mutex::new(socket)))
    }

    /// Returns the stream of a completed upgrade, and the bytes that were already read from it.
    pub(crate) fn of(upgraded: Upgraded) -> Option<(Self, Bytes)> {
        let upgraded = match upgraded.downcast::<TokioIo<TcpStream>>() {
            Ok(parts) => {
                let socket = RawSocket::Tcp(parts.io.into_inner());
                return Some((Self::new(socket), parts.read_buf));
            }
            Err(upgraded) => upgraded,
        };
        let parts = upgraded.downcast::<TokioIo<UnixStream>>().ok()?;
        let socket = RawSocket::Unix(parts.io.into_inner());
        Some((Self::new(socket), parts.read_buf))
    }

    /// Writes as much as the kernel accepts now, without waiting until the socket is writable. The
    /// kernel reports that only when much of its buffer is free, which may take very long with a
    /// slow peer.
    pub(crate) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let sent = match &*self.io() {
            RawSocket::Tcp(stream) => send(stream, bytes, SEND_NOW),
            RawSocket::Unix(stream) => send(stream, bytes, SEND_NOW),
        };
        match sent {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            sent => Ok(sent?),
        }
    }

    /// Writes everything. Times out only if the peer makes no progress within the deadline.
    pub(crate) async fn write_within(
        &mut self,
        mut bytes: &[u8],
        deadline: Duration,
    ) -> Result<(), WriteError> {
        let mut progress = Instant::now();
        while !bytes.is_empty() {
            let written = match timeout(deadline / PROGRESS_CHECKS, self.write(bytes)).await {
                Ok(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(_) => self.write_now(bytes),
            };
            match written.map_err(WriteError::Failed)? {
                0 if progress.elapsed() >= deadline => {
                    return Err(WriteError::NotRead(bytes.len()));
                }
                0 => {}
                count => {
                    bytes = &bytes[count..];
                    progress = Instant::now();
                }
            }
        }
        Ok(())
    }

    /// Asks the kernel for a larger send buffer, and disables its own timeout of the peer. So a
    /// peer with a full buffer finds a close frame behind its unread data. The kernel may ignore
    /// this.
    pub(crate) fn grow_send_buffer(&self) {
        let grow = |socket: SockRef<'_>| {
            if let Ok(bytes) = socket.send_buffer_size() {
                // The kernel doubles the given value.
                let _ = socket.set_send_buffer_size(bytes);
            }
        };
        match &*self.io() {
            RawSocket::Tcp(stream) => {
                let socket = SockRef::from(stream);
                limit_unsent(&socket, u32::MAX, None);
                grow(socket);
            }
            RawSocket::Unix(stream) => grow(SockRef::from(stream)),
        }
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(&*self.io(), RawSocket::Tcp(_))
    }

    /// Shuts down writing, and reads until the peer does the same. Closing a socket with unread
    /// bytes would discard the data written last, which holds the reason of the close.
    pub(crate) async fn close_gracefully(&mut self) {
        let _ = self.shutdown().await;
        let mut discarded = [0; 4096];
        while self.read(&mut discarded).await.is_ok_and(|count| count > 0) {}
    }

    fn io(&self) -> MutexGuard<'_, RawSocket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for SocketStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_read(context, buffer)
    }
}

impl AsyncWrite for SocketStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Writes are not buffered here.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_shutdown(context)
    }
}

impl AsyncRead for RawSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for RawSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Writes are not buffered here.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// A socket for reading only; writes are discarded.
#[derive(Debug)]
pub(crate) struct ReadOnlySocket(SocketStream);

impl ReadOnlySocket {
    pub(crate) fn of(socket: &SocketStream) -> Self {
        Self(socket.clone())
    }
}

impl AsyncRead for ReadOnlySocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for ReadOnlySocket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
