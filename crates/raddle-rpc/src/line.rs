//! The bytes under a websocket, still within reach when the websocket has given up on them.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// A stream that can be shared. The lock is held while bytes are moved, never while waiting.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Mutex<TokioIo<Upgraded>>>);

impl Line {
    pub(crate) fn new(upgraded: Upgraded) -> Self {
        Self(Arc::new(Mutex::new(TokioIo::new(upgraded))))
    }

    /// Says that nothing more will come, and waits for the peer to say the same. What it still sends
    /// is read and forgotten: a socket that is closed with bytes unread takes back what was written
    /// last, and that is the reason for the close.
    pub(crate) async fn hang_up(&mut self) {
        let _ = self.shutdown().await;
        let mut forgotten = [0; 4096];
        while self.read(&mut forgotten).await.is_ok_and(|count| count > 0) {}
    }

    fn io(&self) -> MutexGuard<'_, TokioIo<Upgraded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.io()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io()).poll_shutdown(context)
    }
}

/// A line that is only listened to: what is said into it goes nowhere.
#[derive(Debug)]
pub(crate) struct Ear(Line);

impl Ear {
    pub(crate) fn of(line: &Line) -> Self {
        Self(line.clone())
    }
}

impl AsyncRead for Ear {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Ear {
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
