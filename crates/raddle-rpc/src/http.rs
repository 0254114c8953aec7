//! The HTTP request before a websocket. Every rejection happens here, before any message is read.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming as Body;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::handshake::{ConnectionSlots, PeerInfo};
use crate::{
    Access, AdminPages, Auth, Close, Connection, ConnectionLimits, HttpPage, LazyPage, Peer,
    websocket,
};

/// Admission rules of one listener.
#[derive(Clone, Debug)]
pub(crate) struct ListenerRules {
    pub auth: Auth,
    pub hosts: AllowedHosts,
    pub limits: ConnectionLimits,
    pub admin_pages: Option<Arc<dyn AdminPages>>,
    pub slots: ConnectionSlots,
    pub acceptor: Acceptor,
}

/// Destination of new connections, as long as the listeners are open.
#[derive(Clone, Debug)]
pub(crate) struct Acceptor {
    pub is_open: Arc<AtomicBool>,
    pub accepted: mpsc::WeakSender<Connection>,
}

impl Acceptor {
    /// Returns the sender for one connection. Closing the listeners waits for the senders in use.
    fn enter(&self) -> Option<mpsc::Sender<Connection>> {
        let is_open = self.is_open.load(Ordering::Acquire);
        self.accepted.upgrade().filter(|_| is_open)
    }
}

/// Allowed `Host` headers. A web page that points its own name at this address (DNS rebinding)
/// still sends its own name.
#[derive(Clone, Debug)]
pub(crate) enum AllowedHosts {
    /// A unix socket: browsers cannot reach it, so any name is allowed.
    Any,
    /// A TCP socket: its address, `localhost` on loopback, and the operator's names.
    Of {
        bound: SocketAddr,
        names: Arc<[String]>,
    },
}

/// Answers one request. An accepted upgrade is forwarded as a connection.
pub(crate) async fn answer(
    rules: &ListenerRules,
    peer_info: PeerInfo,
    request: Request<Body>,
) -> Response<Full<Bytes>> {
    let answer =
        admit(rules, &request).and_then(|admitted| grant(rules, peer_info, admitted, request));
    match answer {
        Ok(HttpAnswer::Ready(response)) => response,
        Ok(HttpAnswer::Deferred(page)) => page_response(page.page.await),
        Err(refusal) => {
            tracing::info!(
                status = refusal.status.as_u16(),
                why = refusal.why,
                "http request refused"
            );
            refusal.into_response()
        }
    }
}

/// Response to an admitted request.
enum HttpAnswer {
    Ready(Response<Full<Bytes>>),
    Deferred(LazyPage),
}

/// Reserves capacity for an admitted request, and starts its upgrade.
fn grant(
    rules: &ListenerRules,
    peer_info: PeerInfo,
    admitted: AdmittedRequest,
    request: Request<Body>,
) -> Result<HttpAnswer, HttpRefusal> {
    let busy = |why| refuse(StatusCode::SERVICE_UNAVAILABLE, why);
    let Some(accepted) = rules.acceptor.enter() else {
        return busy("the server is shutting down");
    };
    let (key, principal) = match admitted {
        AdmittedRequest::Health => return Ok(HttpAnswer::Ready(plain(StatusCode::OK, ""))),
        AdmittedRequest::Page(page) => return Ok(HttpAnswer::Deferred(page)),
        AdmittedRequest::Upgrade { key, principal } => (key, principal),
    };
    let Some(permit) = rules.slots.connect() else {
        return busy("too many connections; try again");
    };
    let peer = Peer {
        transport: peer_info.transport,
        principal: principal.or(peer_info.principal),
    };
    let limits = rules.limits;
    let response = switching(limits, &key);
    let upgraded = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let connection = match upgraded.await {
            Ok(upgraded) => websocket::open(upgraded, peer, limits).await,
            Err(error) => {
                tracing::debug!(%error, "websocket upgrade failed");
                None
            }
        };
        if let Some((connection, writer)) = connection {
            let outgoing = connection.outgoing.clone();
            // The receiver is closed.
            if accepted.send(connection).await.is_err() {
                outgoing.close(Close::GOING_AWAY);
            }
            // The connection is handed over; closing the listeners need not wait for it.
            drop(accepted);
            outgoing.when_gone().await;
            // A writer that panicked holds no resources either.
            let _ = writer.await;
        }
        drop(permit);
    });
    Ok(HttpAnswer::Ready(response))
}

#[derive(Debug)]
enum AdmittedRequest {
    Health,
    Page(LazyPage),
    Upgrade {
        key: HeaderValue,
        principal: Option<Box<str>>,
    },
}

#[derive(Debug)]
struct HttpRefusal {
    status: StatusCode,
    why: &'static str,
    text: Option<String>,
}

impl HttpRefusal {
    fn into_response(self) -> Response<Full<Bytes>> {
        let text = self.text.unwrap_or_else(|| self.why.to_owned());
        let mut response = plain(self.status, &text);
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }
}

fn refuse<T>(status: StatusCode, why: &'static str) -> Result<T, HttpRefusal> {
    Err(HttpRefusal {
        status,
        why,
        text: None,
    })
}

fn admit<B>(rules: &ListenerRules, request: &Request<B>) -> Result<AdmittedRequest, HttpRefusal> {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) {
        return refuse(StatusCode::FORBIDDEN, "requests from web pages are refused");
    }
    if request.uri().authority().is_some() {
        return refuse(StatusCode::MISDIRECTED_REQUEST, "this is not a proxy");
    }
    if !rules.hosts.allow(headers) {
        return refuse(
            StatusCode::FORBIDDEN,
            "host is not served here; see --allow-host",
        );
    }
    let path = request.uri().path();
    let is_health = matches!(path, "/readyz" | "/healthz");
    let page = rules
        .admin_pages
        .as_ref()
        .and_then(|pages| pages.page(path));
    if (is_health || page.is_some()) && *request.method() != Method::GET {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    if let Some(page) = page {
        if page.access == Access::Admitted {
            authenticate(rules, headers)?;
        }
        return Ok(AdmittedRequest::Page(page));
    }
    if is_health {
        return Ok(AdmittedRequest::Health);
    }
    let Some(key) = upgrade_key(request) else {
        return refuse(StatusCode::BAD_REQUEST, "expected a websocket upgrade");
    };
    let principal = authenticate(rules, headers)?;
    Ok(AdmittedRequest::Upgrade { key, principal })
}

/// Authenticates the request. Returns the principal, if the token has one.
fn authenticate(
    rules: &ListenerRules,
    headers: &HeaderMap,
) -> Result<Option<Box<str>>, HttpRefusal> {
    let principal = rules.auth.check(headers, SystemTime::now());
    principal.map_err(|error| HttpRefusal {
        status: StatusCode::UNAUTHORIZED,
        why: "not authenticated",
        text: Some(error.to_string()),
    })
}

/// Returns the key of a well-formed websocket upgrade.
fn upgrade_key<B>(request: &Request<B>) -> Option<HeaderValue> {
    let headers = request.headers();
    let lists = |name, token: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| {
                value
                    .split(',')
                    .any(|part| part.trim().eq_ignore_ascii_case(token))
            })
    };
    let upgrades = request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && lists(header::CONNECTION, "upgrade")
        && lists(header::UPGRADE, "websocket")
        && headers
            .get(header::SEC_WEBSOCKET_VERSION)
            .is_some_and(|version| version == "13");
    headers
        .get(header::SEC_WEBSOCKET_KEY)
        .filter(|_| upgrades)
        .cloned()
}

/// The response that opens a websocket.
fn switching(limits: ConnectionLimits, key: &HeaderValue) -> Response<Full<Bytes>> {
    let accept = derive_accept_key(key.as_bytes());
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    // Clients of this protocol read this limit before they send a long message in one frame.
    headers.insert(
        "x-codex-websocket-max-unfragmented-message-bytes",
        HeaderValue::from(limits.message_bytes_max),
    );
    response
}

fn page_response(page: HttpPage) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = plain(status, &page.text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.media));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A response that ends its connection: without an upgrade no connection stays open.
fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

impl AllowedHosts {
    fn allow(&self, headers: &HeaderMap) -> bool {
        let Self::Of { bound, names } = self else {
            return true;
        };
        let mut values = headers.get_all(header::HOST).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return false;
        };
        let Ok(value) = value.to_str() else {
            return false;
        };
        // An address literal cannot be rebound. A name can, so names must be listed.
        if let Ok(address) = value.parse::<SocketAddr>() {
            return port_is_plain(value, bound.port()) && allows_ip(bound.ip(), address.ip());
        }
        if let Some(ip) = value
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            return ip
                .parse()
                .is_ok_and(|ip| allows_ip(bound.ip(), IpAddr::V6(ip)));
        }
        // A port must be the bound one. Clients of port 80 and many proxies omit it.
        let name = match value.rsplit_once(':') {
            Some((name, _)) if port_is_plain(value, bound.port()) => name,
            Some(_) => return false,
            None => value,
        };
        if let Ok(ip) = name.parse::<IpAddr>() {
            return allows_ip(bound.ip(), ip);
        }
        (bound.ip().is_loopback() && name.eq_ignore_ascii_case("localhost"))
            || names.iter().any(|listed| listed.eq_ignore_ascii_case(name))
    }
}

/// Whether the port is written as a plain number, without a sign or leading zeros.
fn port_is_plain(value: &str, port: u16) -> bool {
    value.ends_with(&format!(":{port}"))
}

fn allows_ip(bound: IpAddr, requested: IpAddr) -> bool {
    bound.is_unspecified() || bound == requested
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(bound: &str, hosts: &[&str]) -> bool {
        let names = Arc::from(vec!["agents.example".to_owned()]);
        let hosts_rule = AllowedHosts::Of {
            bound: bound.parse().expect("an address"),
            names,
        };
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(
                header::HOST,
                HeaderValue::from_bytes(host.as_bytes()).expect("a header"),
            );
        }
        hosts_rule.allow(&headers)
    }

    #[test]
    fn hosts() {
        for good in [
            "127.0.0.1",
            "127.0.0.1:4500",
            "localhost",
            "LocalHost:4500",
            "agents.example:4500",
        ] {
            assert!(allowed("127.0.0.1:4500", &[good]), "{good}");
        }
        assert!(allowed("[::1]:4500", &["[::1]:4500"]));
        assert!(allowed("[::1]:4500", &["[::1]"]));
        assert!(allowed("127.0.0.1:80", &["127.0.0.1"]));
        assert!(allowed("0.0.0.0:4500", &["192.0.2.7:4500"]));
        for bad in [
            "",
            "127.0.0.1:4501",
            "localhost.",
            "localhost.:4500",
            "localhost.evil.test:4500",
            "evil.test:4500",
            "127.0.0.1:4500@evil.test",
            "127.0.0.1:+4500",
            "127.0.0.1:04500",
            "127.0.0.2:4500",
            "127.0.0.1.:4500",
            "[::1]:4500",
            "agents.example.evil.test:4500",
            "0x7f.1:4500",
            "2130706433:4500",
        ] {
            assert!(!allowed("127.0.0.1:4500", &[bad]), "{bad}");
        }
        assert!(!allowed("127.0.0.1:4500", &[]));
        assert!(!allowed(
            "127.0.0.1:4500",
            &["127.0.0.1:4500", "127.0.0.1:4500"]
        ));
        assert!(!allowed("0.0.0.0:4500", &["localhost:4500"]));
    }
}
