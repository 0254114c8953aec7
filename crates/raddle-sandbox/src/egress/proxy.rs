//! The proxy: one request on one connection.

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
use super::head::{BadHead, Forwarding, HEAD_BYTES_MAX, RequestHead};
use super::host::{EgressTarget, Host};
use super::local_addresses;
use super::rules::{EgressRules, Verdict};

/// Timeouts for the head of a request, and for a connection to a host.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const DIAL_TIMEOUT: Duration = Duration::from_secs(15);

/// A proxy for sandboxed commands, which have no other network access.
#[derive(Clone)]
pub struct Proxy {
    rules: Arc<EgressRules>,
    dialer: Arc<dyn Dialer>,
    on_decision: Arc<dyn Fn(EgressDecision) + Send + Sync>,
}

/// Decision about a request: its target, and nothing of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressDecision {
    /// The host and port that the request names.
    pub target: EgressTarget,
    /// Whether the proxy connected to it.
    pub allowed: bool,
    /// The reason in a few words.
    pub why: &'static str,
}

/// The network outside: names and connections.
pub trait Dialer: Send + Sync {
    /// Resolves a name to its addresses.
    fn resolve<'a>(&'a self, name: &'a str) -> EgressFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Returns the addresses of this machine itself.
    fn local_addresses(&self) -> io::Result<Vec<IpAddr>>;

    /// Connects to an address.
    fn dial(&self, address: SocketAddr) -> EgressFuture<'_, io::Result<TcpStream>>;
}

type EgressFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The resolver and the connections of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDialer;

impl Dialer for SystemDialer {
    fn resolve<'a>(&'a self, name: &'a str) -> EgressFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }

    fn local_addresses(&self) -> io::Result<Vec<IpAddr>> {
        local_addresses::addresses()
    }

    fn dial(&self, address: SocketAddr) -> EgressFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}

/// Response to a rejected request.
struct ProxyRefusal {
    status: &'static str,
    text: String,
}

impl Proxy {
    /// Builds a proxy that follows these rules and reports its decisions to a callback.
    pub fn new(
        rules: EgressRules,
        dialer: Arc<dyn Dialer>,
        on_decision: impl Fn(EgressDecision) + Send + Sync + 'static,
    ) -> Self {
        Self {
            rules: Arc::new(rules),
            dialer,
            on_decision: Arc::new(on_decision),
        }
    }

    /// Serves one connection to its end. Dropping the future closes it.
    pub async fn serve(&self, mut client: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut received = Vec::with_capacity(1024);
        let head = match timeout(HEAD_TIMEOUT, read(&mut client, &mut received)).await {
            Ok(Ok(Some(head))) => head,
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(HeadReadError::Bad(bad))) => return refuse(&mut client, bad.into()).await,
            Ok(Err(HeadReadError::Io(error))) => return Err(error),
            Err(_) => return Ok(()),
        };
        let RequestHead {
            target,
            forwarding,
            bytes,
        } = head;
        let rest = received.split_off(bytes);
        let mut server = match self.connect(&target).await {
            Ok(server) => server,
            Err(refusal) => return refuse(&mut client, refusal).await,
        };
        match forwarding {
            Forwarding::Tunnel => {
                client
                    .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    .await?;
                server.write_all(&rest).await?;
                copy_bidirectional(&mut client, &mut server).await?;
            }
            Forwarding::Forward { head, body } => {
                server.write_all(&head).await?;
                forward(client, server, &rest, body).await?;
            }
        }
        Ok(())
    }

    /// Connects to a target that the rules allow, at an address that they allow.
    async fn connect(&self, target: &EgressTarget) -> Result<TcpStream, ProxyRefusal> {
        let verdict = self.rules.verdict(target);
        let addresses = match (verdict, &target.host) {
            (Verdict::Allowed | Verdict::AllowedAddress, Host::Address(address)) => vec![*address],
            (Verdict::Allowed | Verdict::AllowedAddress, Host::Name(name)) => {
                let resolved = timeout(DIAL_TIMEOUT, self.dialer.resolve(name)).await;
                let Ok(Ok(resolved)) = resolved else {
                    self.report_decision(target, false, "no such name");
                    return Err(ProxyRefusal::gateway(target, "its name has no address"));
                };
                let Ok(local) = self.dialer.local_addresses() else {
                    self.report_decision(target, false, "own addresses unknown");
                    return Err(ProxyRefusal::gateway(
                        target,
                        "this machine does not say which addresses are its own",
                    ));
                };
                // An IPv4 address may come in the form of an IPv6 one.
                let is_remote = |it: &IpAddr| !local.contains(&it.to_canonical());
                let public: Vec<IpAddr> = resolved
                    .into_iter()
                    .filter(|it| is_public(*it) && is_remote(it))
                    .collect();
                if public.is_empty() {
                    self.report_decision(target, false, "no public address");
                    return Err(ProxyRefusal::forbidden(
                        target,
                        "its name leads to an address that is not public, or is this machine's own",
                    ));
                }
                public
            }
            (Verdict::Denied, _) => {
                self.report_decision(target, false, "denied");
                return Err(ProxyRefusal::forbidden(target, "a rule denies it"));
            }
            (Verdict::OtherPort, _) => {
                self.report_decision(target, false, "port not listed");
                return Err(ProxyRefusal::forbidden(
                    target,
                    "the host is listed, but not with this port; list it as HOST:PORT",
                ));
            }
            (Verdict::NotListed, _) => {
                self.report_decision(target, false, "not listed");
                return Err(ProxyRefusal::forbidden(
                    target,
                    "the host is not on the list",
                ));
            }
        };
        for address in addresses {
            let connection = self.dialer.dial(SocketAddr::new(address, target.port));
            if let Ok(Ok(server)) = timeout(DIAL_TIMEOUT, connection).await {
                self.report_decision(target, true, "listed");
                return Ok(server);
            }
        }
        self.report_decision(target, false, "not reached");
        Err(ProxyRefusal::gateway(target, "it could not be reached"))
    }

    fn report_decision(&self, target: &EgressTarget, allowed: bool, why: &'static str) {
        (self.on_decision)(EgressDecision {
            target: target.clone(),
            allowed,
            why,
        });
    }
}

impl ProxyRefusal {
    fn forbidden(target: &EgressTarget, why: &str) -> Self {
        Self {
            status: "403 Forbidden",
            text: format!("{target} is not reached from this sandbox: {why}\n"),
        }
    }

    fn gateway(target: &EgressTarget, why: &str) -> Self {
        Self {
            status: "502 Bad Gateway",
            text: format!("{target} was not reached: {why}\n"),
        }
    }
}

impl From<BadHead> for ProxyRefusal {
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

enum HeadReadError {
    Bad(BadHead),
    Io(io::Error),
}

/// Reads until the head is complete; `None` if the client closes the connection before that.
async fn read(
    client: &mut (impl AsyncRead + Unpin),
    received: &mut Vec<u8>,
) -> Result<Option<RequestHead>, HeadReadError> {
    loop {
        let mut more = client.take((HEAD_BYTES_MAX - received.len().min(HEAD_BYTES_MAX)) as u64);
        if more.read_buf(received).await.map_err(HeadReadError::Io)? == 0 {
            return Ok(None);
        }
        if let Some(head) = RequestHead::parse(received).map_err(HeadReadError::Bad)? {
            return Ok(Some(head));
        }
    }
}

/// Sends the body and no second request after it, and returns the answer.
async fn forward(
    client: impl AsyncRead + AsyncWrite + Unpin,
    server: TcpStream,
    rest: &[u8],
    body: u64,
) -> io::Result<()> {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let received = rest.len().min(usize::try_from(body).unwrap_or(usize::MAX));
    let send = async {
        to_server.write_all(&rest[..received]).await?;
        let mut remaining = (&mut from_client).take(body - received as u64);
        copy(&mut remaining, &mut to_server).await?;
        // The end of the answer ends the connection.
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

async fn refuse(client: &mut (impl AsyncWrite + Unpin), refusal: ProxyRefusal) -> io::Result<()> {
    let ProxyRefusal { status, text } = refusal;
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}

#[cfg(test)]
mod tests;
