//! Byte streams to a vendor and back.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpStream, lookup_host};

use crate::public_address::is_public;

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

    /// Connects to a proxy, which the operator chose.
    fn dial_proxy<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        self.dial(host, port)
    }
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

/// Connects over TCP to public addresses, whatever a name resolves to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicTcp;

impl Dial for PublicTcp {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Box::pin(async move {
            // The address that was checked is the one that is used: a second lookup could differ.
            let addresses = lookup_host((host, port)).await?;
            let public: Vec<SocketAddr> = addresses.filter(|it| is_public(it.ip())).collect();
            if public.is_empty() {
                let text = format!("{host} has no public address, and a public server named it");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
            let stream = TcpStream::connect(&public[..]).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }

    fn dial_proxy<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Tcp.dial(host, port)
    }
}
