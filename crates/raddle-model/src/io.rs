//! Byte streams to a vendor and back.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {
    /// Makes the peer see a reset in place of an orderly end, where the transport has resets.
    fn reset(&self) {}
}

impl Io for TcpStream {
    fn reset(&self) {
        let _ = self.set_zero_linger();
    }
}

impl Io for DuplexStream {}

/// A connection that is being established.
pub type DialFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send + 'a>>;

/// Opens connections to vendors.
pub trait Dial: Send + Sync + fmt::Debug {
    /// Connects to a port of a host.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a>;
}

/// Connects to vendors over TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tcp;

impl Dial for Tcp {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}
