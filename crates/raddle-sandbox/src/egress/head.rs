//! Requests to the proxy.

use super::host::{BadHost, EgressTarget};

/// Longest head of a request, and most headers.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// The head of a request to the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The host and port that the request names.
    pub target: EgressTarget,
    /// The method of forwarding.
    pub forwarding: Forwarding,
    /// Length of the head.
    pub bytes: usize,
}

/// Method by which the proxy forwards a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// The proxy copies all bytes that follow, in both directions.
    Tunnel,
    /// The proxy sends this head, and then so many bytes of a body.
    Forward {
        /// The head for the server, which names the host that the rules allowed.
        head: Vec<u8>,
        /// Length of the body.
        body: u64,
    },
}

/// Reason why a head is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// It is not HTTP, or repeats a header that must be unique.
    #[error("the request is not plain HTTP/1.1")]
    Http,
    /// It exceeds a limit.
    #[error("the request's head is over 16 KiB, or has over 64 headers")]
    TooLong,
    /// It names no `http://` address.
    #[error("invalid proxy request: use CONNECT, or an http:// address")]
    Form,
    /// The host is invalid.
    #[error(transparent)]
    Host(#[from] BadHost),
    /// Its body has no `Content-Length`.
    #[error("a body needs a Content-Length here; https has no such limit")]
    Length,
}

impl RequestHead {
    /// Parses a head; `None` while it is incomplete.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, BadHead> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let status = request.parse(bytes).map_err(|error| match error {
            httparse::Error::TooManyHeaders => BadHead::TooLong,
            _ => BadHead::Http,
        })?;
        let httparse::Status::Complete(length) = status else {
            return match bytes.len() {
                0..HEAD_BYTES_MAX => Ok(None),
                _ => Err(BadHead::TooLong),
            };
        };
        let (Some(method), Some(path)) = (request.method, request.path) else {
            return Err(BadHead::Http);
        };
        let (target, forwarding) = if method == "CONNECT" {
            (EgressTarget::parse(path, None)?, Forwarding::Tunnel)
        } else {
            forward(method, path, request.headers)?
        };
        Ok(Some(Self {
            target,
            forwarding,
            bytes: length,
        }))
    }
}

fn forward(
    method: &str,
    url: &str,
    headers: &[httparse::Header<'_>],
) -> Result<(EgressTarget, Forwarding), BadHead> {
    let scheme = url.get(..7).ok_or(BadHead::Form)?;
    if !scheme.eq_ignore_ascii_case("http://") {
        return Err(BadHead::Form);
    }
    let rest = &url[7..];
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = EgressTarget::parse(authority, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    if path.contains(['#', '\\']) {
        return Err(BadHead::Form);
    }
    let host = match target.port {
        80 => target.host.to_string(),
        _ => target.to_string(),
    };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}\r\n").into_bytes();
    let mut body = None;
    for header in headers {
        let name = header.name.to_ascii_lowercase();
        match name.as_str() {
            "host" | "connection" | "keep-alive" | "te" | "trailer" | "upgrade" => continue,
            "transfer-encoding" => return Err(BadHead::Length),
            "content-length" => {
                let length = length(header.value).ok_or(BadHead::Http)?;
                if body.replace(length).is_some() {
                    return Err(BadHead::Http);
                }
            }
            name if name.starts_with("proxy-") => continue,
            _ => {}
        }
        head.extend_from_slice(header.name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(header.value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    let body = body.unwrap_or(0);
    Ok((target, Forwarding::Forward { head, body }))
}

/// Parses a length of digits only.
fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Result<String, BadHead> {
        let head = RequestHead::parse(head.as_bytes())?.expect("a whole head");
        Ok(match head.forwarding {
            Forwarding::Tunnel => format!("{} tunnel", head.target),
            Forwarding::Forward { head: sent, body } => {
                let sent = String::from_utf8(sent).expect("text");
                format!("{} {body} {}", head.target, sent.replace("\r\n", "|"))
            }
        })
    }

    #[test]
    fn heads() {
        for (head, expected) in [
            (
                "CONNECT example.com:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                Ok("example.com:443 tunnel"),
            ),
            (
                "CONNECT example.com HTTP/1.1\r\n\r\n",
                Err(BadHost::Port.into()),
            ),
            (
                "CONNECT http://example.com:443 HTTP/1.1\r\n\r\n",
                Err(BadHost::Port.into()),
            ),
            (
                "GET http://Example.com/a?b HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n",
                Ok(
                    "example.com:80 0 GET /a?b HTTP/1.1|Host: example.com|Accept: */*|Connection: close||",
                ),
            ),
            (
                "POST http://example.com:8080?q HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
                Ok(
                    "example.com:8080 5 POST /?q HTTP/1.1|Host: example.com:8080|Content-Length: 5|Connection: close||",
                ),
            ),
            (
                "GET http://example.com@evil.test/ HTTP/1.1\r\n\r\n",
                Err(BadHost::Character.into()),
            ),
            (
                "GET http://example.com:80@evil.test/ HTTP/1.1\r\n\r\n",
                Err(BadHost::Port.into()),
            ),
            (
                "GET http://evil.test\\@example.com/ HTTP/1.1\r\n\r\n",
                Err(BadHead::Form),
            ),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Err(BadHead::Form)),
            (
                "GET https://example.com/ HTTP/1.1\r\n\r\n",
                Err(BadHead::Form),
            ),
            (
                "POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                Err(BadHead::Length),
            ),
            (
                "POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                Err(BadHead::Http),
            ),
            (
                "POST http://example.com/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
                Err(BadHead::Http),
            ),
            ("\x16\x03\x01 HTTP/1.1\r\n\r\n", Err(BadHead::Http)),
        ] {
            assert_eq!(parsed(head), expected.map(str::to_owned), "{head:?}");
        }
        assert_eq!(RequestHead::parse(b"CONNECT a:1 HTTP/1.1\r\n"), Ok(None));
        let long = [b"GET http://a/".as_slice(), &[b'a'; HEAD_BYTES_MAX]].concat();
        assert_eq!(RequestHead::parse(&long), Err(BadHead::TooLong));
    }
}
