//! The proxy itself: one request on one connection.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::address::is_public;
use super::head::{BadHead, HEAD_BYTES_MAX, Head, Way};
use super::host::{Host, Target};
use super::own;
use super::rules::{Rules, Verdict};

/// How long a request may take to be said, and a connection to be made.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
const DIAL_PATIENCE: Duration = Duration::from_secs(15);

/// A way out for those who have no other.
#[derive(Clone)]
pub struct Proxy {
    rules: Arc<Rules>,
    outside: Arc<dyn Outside>,
    note: Arc<dyn Fn(Noted) + Send + Sync>,
}

/// What was decided of a request: where it led and nothing of what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Where it led.
    pub target: Target,
    /// Whether it got there.
    pub allowed: bool,
    /// Why, in a few words.
    pub why: &'static str,
}

/// What is outside: names and connections.
pub trait Outside: Send + Sync {
    /// The addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, io::Result<Vec<IpAddr>>>;

    /// The addresses of this machine itself.
    fn own(&self) -> io::Result<Vec<IpAddr>>;

    /// A connection to an address.
    fn dial(&self, address: SocketAddr) -> Waiting<'_, io::Result<TcpStream>>;
}

type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The system's own names and connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Outside for System {
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn own(&self) -> io::Result<Vec<IpAddr>> {
        own::addresses()
    }

    fn dial(&self, address: SocketAddr) -> Waiting<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}

/// Why a request goes nowhere, as who asked is told.
struct Refused {
    status: &'static str,
    text: String,
}

impl Proxy {
    /// A proxy that follows these rules, and tells of what it decides.
    pub fn new(
        rules: Rules,
        outside: Arc<dyn Outside>,
        note: impl Fn(Noted) + Send + Sync + 'static,
    ) -> Self {
        Self {
            rules: Arc::new(rules),
            outside,
            note: Arc::new(note),
        }
    }

    /// Serves one connection to its end. Dropping this ends it.
    pub async fn serve(&self, mut client: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut said = Vec::with_capacity(1024);
        let head = match timeout(HEAD_PATIENCE, read(&mut client, &mut said)).await {
            Ok(Ok(Some(head))) => head,
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(Reading::Bad(bad))) => return refuse(&mut client, bad.into()).await,
            Ok(Err(Reading::Io(error))) => return Err(error),
            Err(_) => return Ok(()),
        };
        let Head { target, way, bytes } = head;
        let rest = said.split_off(bytes);
        let mut server = match self.reach(&target).await {
            Ok(server) => server,
            Err(refused) => return refuse(&mut client, refused).await,
        };
        match way {
            Way::Tunnel => {
                client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await?;
                server.write_all(&rest).await?;
                copy_bidirectional(&mut client, &mut server).await?;
            }
            Way::Forward { head, body } => {
                server.write_all(&head).await?;
                forward(client, server, &rest, body).await?;
            }
        }
        Ok(())
    }

    /// Connects to what the rules allow, at an address that it may have.
    async fn reach(&self, target: &Target) -> Result<TcpStream, Refused> {
        let verdict = self.rules.verdict(target);
        let addresses = match (verdict, &target.host) {
            (Verdict::Allowed | Verdict::AllowedAddress, Host::Address(address)) => vec![*address],
            (Verdict::Allowed | Verdict::AllowedAddress, Host::Name(name)) => {
                let found = timeout(DIAL_PATIENCE, self.outside.resolve(name)).await;
                let Ok(Ok(found)) = found else {
                    self.noted(target, false, "no such name");
                    return Err(Refused::gateway(target, "its name has no address"));
                };
                let Ok(own) = self.outside.own() else {
                    self.noted(target, false, "own addresses unknown");
                    return Err(Refused::gateway(
                        target,
                        "this machine does not say which addresses are its own",
                    ));
                };
                // One of the fourth version may come in the dress of the sixth.
                let is_others = |it: &IpAddr| !own.contains(&it.to_canonical());
                let public: Vec<IpAddr> = found
                    .into_iter()
                    .filter(|it| is_public(*it) && is_others(it))
                    .collect();
                if public.is_empty() {
                    self.noted(target, false, "no public address");
                    return Err(Refused::forbidden(
                        target,
                        "its name leads to an address that is not public, or is this machine's own",
                    ));
                }
                public
            }
            (Verdict::Denied, _) => {
                self.noted(target, false, "denied");
                return Err(Refused::forbidden(target, "a rule denies it"));
            }
            (Verdict::OtherPort, _) => {
                self.noted(target, false, "port not listed");
                return Err(Refused::forbidden(
                    target,
                    "the host is listed, but not with this port; list it as HOST:PORT",
                ));
            }
            (Verdict::NotListed, _) => {
                self.noted(target, false, "not listed");
                return Err(Refused::forbidden(target, "the host is not on the list"));
            }
        };
        for address in addresses {
            let dialled = self.outside.dial(SocketAddr::new(address, target.port));
            if let Ok(Ok(server)) = timeout(DIAL_PATIENCE, dialled).await {
                self.noted(target, true, "listed");
                return Ok(server);
            }
        }
        self.noted(target, false, "not reached");
        Err(Refused::gateway(target, "it could not be reached"))
    }

    fn noted(&self, target: &Target, allowed: bool, why: &'static str) {
        (self.note)(Noted {
            target: target.clone(),
            allowed,
            why,
        });
    }
}

impl Refused {
    fn forbidden(target: &Target, why: &str) -> Self {
        Self {
            status: "403 Forbidden",
            text: format!("{target} is not reached from this sandbox: {why}\n"),
        }
    }

    fn gateway(target: &Target, why: &str) -> Self {
        Self {
            status: "502 Bad Gateway",
            text: format!("{target} was not reached: {why}\n"),
        }
    }
}

impl From<BadHead> for Refused {
    fn from(bad: BadHead) -> Self {
        Self {
            status: match bad {
                BadHead::Length => "411 Length Required",
                BadHead::TooLong => "431 Request Header Fields Too Large",
                BadHead::Http | BadHead::Form | BadHead::Host(_) => "400 Bad Request",
            },
            text: format!("{bad}\n"),
        }
    }
}

enum Reading {
    Bad(BadHead),
    Io(io::Error),
}

/// Reads until the head is whole; nothing if who asks leaves before that.
async fn read(
    client: &mut (impl AsyncRead + Unpin),
    said: &mut Vec<u8>,
) -> Result<Option<Head>, Reading> {
    loop {
        let mut more = client.take((HEAD_BYTES_MAX - said.len().min(HEAD_BYTES_MAX)) as u64);
        if more.read_buf(said).await.map_err(Reading::Io)? == 0 {
            return Ok(None);
        }
        if let Some(head) = Head::parse(said).map_err(Reading::Bad)? {
            return Ok(Some(head));
        }
    }
}

/// Sends so much of a body, and no second request behind it, and takes the answer.
async fn forward(
    client: impl AsyncRead + AsyncWrite + Unpin,
    server: TcpStream,
    rest: &[u8],
    body: u64,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let begun = rest.len().min(usize::try_from(body).unwrap_or(usize::MAX));
    let send = async {
        to_server.write_all(&rest[..begun]).await?;
        let mut left = (&mut from_client).take(body - begun as u64);
        copy(&mut left, &mut to_server).await?;
        // The answer's end is the end.
        std::future::pending::<io::Result<()>>().await
    };
    let answer = async {
        copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::select! {
        answered = answer => answered,
        failed = send => failed,
    }
}

async fn refuse(client: &mut (impl AsyncWrite + Unpin), refused: Refused) -> io::Result<()> {
    let Refused { status, text } = refused;
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

#[cfg(test)]
mod tests;
