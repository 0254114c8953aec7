//! Tunnels through a proxy, where the environment names one.

use std::fmt;
use std::io;
use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::Uri;
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::pool::RemoteHost;
use crate::io::Io;

/// Longest head of a proxy's answer.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// Proxies for `https://`, and the hosts that are reached without them.
#[derive(Default)]
pub(super) struct Proxies {
    proxy: Option<Proxy>,
    /// The variable that names an invalid proxy. No request bypasses it.
    invalid: Option<&'static str>,
    exempt: Vec<String>,
}

/// A proxy that accepts `CONNECT`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    pub(super) host: String,
    pub(super) port: u16,
    /// User and password in Base64.
    credentials: Option<String>,
}

/// Reason why a proxy opened no tunnel.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProxyError {
    /// The variable names no proxy.
    #[error("{variable} cannot be a proxy; write it like http://proxy.example.com:3128")]
    Invalid { variable: &'static str },
    /// The connection broke.
    #[error("the proxy {proxy} broke off: {error}")]
    BrokeOff { proxy: Proxy, error: io::Error },
    /// Its answer is too long.
    #[error("the proxy {proxy} answered with too long a head")]
    LongHead { proxy: Proxy },
    /// It refused the tunnel.
    #[error("the proxy {proxy} refused a tunnel to {target}: {status}")]
    Refused {
        proxy: Proxy,
        target: String,
        status: String,
    },
}

impl Proxies {
    /// Reads the proxies of the environment: `https_proxy`, else `all_proxy`, and `no_proxy`, in
    /// lower or upper case.
    pub(super) fn of_environment() -> Self {
        Self::of(|name| {
            let variable = std::env::var(name).or_else(|_| std::env::var(name.to_uppercase()));
            variable.ok().filter(|it| !it.trim().is_empty())
        })
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let variables = ["https_proxy", "all_proxy"].into_iter();
        let variable_text = variables
            .filter_map(|name| Some((name, variable(name)?)))
            .next();
        let parsed = variable_text.map(|(name, text)| Proxy::parse(text.trim()).ok_or(name));
        let exempt = variable("no_proxy").unwrap_or_default();
        let exempt = exempt.split([',', ' ']).map(|it| it.trim().to_lowercase());
        Self {
            proxy: parsed.clone().and_then(Result::ok),
            invalid: parsed.and_then(Result::err),
            exempt: exempt.filter(|it| !it.is_empty()).collect(),
        }
    }

    /// Returns the proxy for a host, if there is one.
    pub(super) fn proxy_for(&self, remote: &RemoteHost) -> Result<Option<&Proxy>, ProxyError> {
        if !remote.is_safe || self.is_exempt(&remote.host) {
            return Ok(None);
        }
        match self.invalid {
            Some(variable) => Err(ProxyError::Invalid { variable }),
            None => Ok(self.proxy.as_ref()),
        }
    }

    /// Whether the host is this machine itself, or `no_proxy` names it: a host, a domain with all
    /// below it, or everything.
    fn is_exempt(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        let is_loopback = host.parse().is_ok_and(|it: IpAddr| it.is_loopback());
        let matches_host = |it: &String| {
            let name = it.trim_start_matches("*.").trim_start_matches('.');
            it == "*" || host == name || host.ends_with(&format!(".{name}"))
        };
        is_loopback || host == "localhost" || self.exempt.iter().any(matches_host)
    }
}

impl Proxy {
    fn parse(text: &str) -> Option<Self> {
        let url = match text.contains("://") {
            true => text.to_owned(),
            false => format!("http://{text}"),
        };
        let uri: Uri = url.parse().ok()?;
        if uri.scheme_str() != Some("http") {
            return None;
        }
        let authority = uri.authority()?;
        let credentials = authority.as_str().rsplit_once('@');
        let credentials = credentials.map(|(user_info, _)| {
            let decoded: Vec<u8> = percent_decode_str(user_info).collect();
            BASE64_STANDARD.encode(decoded)
        });
        Some(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            credentials,
        })
    }

    /// Asks the proxy for a tunnel to a host.
    pub(super) async fn tunnel(
        &self,
        io: &mut dyn Io,
        remote: &RemoteHost,
    ) -> Result<(), ProxyError> {
        let host = match remote.host.contains(':') {
            true => format!("[{}]", remote.host),
            false => remote.host.clone(),
        };
        let target = format!("{host}:{}", remote.port);
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n");
        if let Some(credentials) = &self.credentials {
            request += &format!("proxy-authorization: Basic {credentials}\r\n");
        }
        request += "\r\n";
        let io_error = |error: io::Error| ProxyError::BrokeOff {
            proxy: self.clone(),
            error,
        };
        io.write_all(request.as_bytes()).await.map_err(io_error)?;
        io.flush().await.map_err(io_error)?;
        let mut head = Vec::new();
        // Byte by byte, so that no byte after the head is consumed.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == HEAD_BYTES_MAX {
                return Err(ProxyError::LongHead {
                    proxy: self.clone(),
                });
            }
            head.push(io.read_u8().await.map_err(io_error)?);
        }
        let head = String::from_utf8_lossy(&head);
        let status = head.lines().next().unwrap_or_default();
        match status.split(' ').nth(1) {
            Some(code) if code.len() == 3 && code.starts_with('2') => Ok(()),
            _ => Err(ProxyError::Refused {
                proxy: self.clone(),
                target,
                status: status.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    /// Formats the proxy without its credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxies").field(&self.proxy).finish()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncBufReadExt;

    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::of(|name| {
            let entry = variables.iter().find(|(it, _)| *it == name);
            entry.map(|(_, value)| (*value).to_owned())
        })
    }

    fn remote(host: &str, is_safe: bool) -> RemoteHost {
        RemoteHost {
            host: host.to_owned(),
            port: 443,
            is_safe,
        }
    }

    #[test]
    fn the_environment_selects_the_proxy() {
        let named = ("https_proxy", "http://p:3128");
        for (variables, host, is_safe, expected) in [
            (&[][..], "a.com", true, Ok("")),
            (&[named][..], "a.com", true, Ok("p:3128")),
            (&[named][..], "a.com", false, Ok("")),
            (&[named][..], "127.0.0.1", true, Ok("")),
            (&[named][..], "::1", true, Ok("")),
            (&[named][..], "localhost", true, Ok("")),
            (&[("all_proxy", "q")][..], "a.com", true, Ok("q:80")),
            (
                &[("all_proxy", "q"), named][..],
                "a.com",
                true,
                Ok("p:3128"),
            ),
            (
                &[named, ("no_proxy", "b.com, a.com")][..],
                "a.com",
                true,
                Ok(""),
            ),
            (
                &[named, ("no_proxy", ".a.com")][..],
                "x.A.com",
                true,
                Ok(""),
            ),
            (&[named, ("no_proxy", "a.com")][..], "x.a.com", true, Ok("")),
            (
                &[named, ("no_proxy", "a.com")][..],
                "xa.com",
                true,
                Ok("p:3128"),
            ),
            (
                &[named, ("no_proxy", "*.a.com")][..],
                "x.a.com",
                true,
                Ok(""),
            ),
            (
                &[named, ("no_proxy", "b.com a.com")][..],
                "a.com",
                true,
                Ok(""),
            ),
            (&[named, ("no_proxy", "*")][..], "a.com", true, Ok("")),
            (&[named, ("no_proxy", "*")][..], "10.0.0.1", true, Ok("")),
            (
                &[("https_proxy", "ftp://p"), ("all_proxy", "q")][..],
                "a.com",
                true,
                Err(()),
            ),
            (
                &[("https_proxy", "socks5://p:1")][..],
                "a.com",
                true,
                Err(()),
            ),
            (
                &[("https_proxy", "socks5://p:1")][..],
                "a.com",
                false,
                Ok(""),
            ),
        ] {
            let proxies = proxies(variables);
            let proxy = proxies.proxy_for(&remote(host, is_safe));
            let proxy = proxy.map(|it| it.map_or_else(String::new, ToString::to_string));
            let proxy = proxy.map_err(|_| ());
            assert_eq!(proxy, expected.map(str::to_owned), "{variables:?} {host}");
        }
    }

    /// Returns the request to a proxy, and the result of its answer.
    async fn tunnel_exchange(proxy: &str, answer: &str) -> (Vec<String>, Result<(), String>) {
        let (mut near, far) = tokio::io::duplex(1024);
        let answer = answer.to_owned();
        let proxy_task = tokio::spawn(async move {
            let mut far = tokio::io::BufReader::new(far);
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                far.read_line(&mut line).await.expect("a line");
                if line == "\r\n" {
                    break;
                }
                lines.push(line.trim_end().to_owned());
            }
            far.write_all(answer.as_bytes()).await.expect("sent");
            lines
        });
        let proxy = Proxy::parse(proxy).expect("a proxy");
        let result = proxy.tunnel(&mut near, &remote("a.com", true)).await;
        let result = result.map_err(|error| error.to_string());
        (proxy_task.await.expect("asked"), result)
    }

    #[tokio::test]
    async fn a_proxy_is_asked_and_may_refuse() {
        let (lines, result) =
            tunnel_exchange("u:p%40ss@p:1", "HTTP/1.1 200 Connected\r\nvia: p\r\n\r\n").await;
        let expected = [
            "CONNECT a.com:443 HTTP/1.1",
            "host: a.com:443",
            "proxy-authorization: Basic dTpwQHNz",
        ];
        assert_eq!(
            (lines, result),
            (expected.map(str::to_owned).to_vec(), Ok(()))
        );
        let (lines, result) = tunnel_exchange("p:1", "HTTP/1.1 407 Who are you\r\n\r\n").await;
        assert_eq!(lines.len(), 2);
        let expected = "the proxy p:1 refused a tunnel to a.com:443: HTTP/1.1 407 Who are you";
        assert_eq!(result, Err(expected.to_owned()));
        let (_, result) = tunnel_exchange("p:1", "HTTP/1.1 200").await;
        assert!(result.is_err_and(|it| it.contains("broke off")));
    }

    #[test]
    fn credentials_are_not_shown() {
        let proxies = proxies(&[("https_proxy", "http://user:secret@p:1")]);
        assert_eq!(format!("{proxies:?}"), "Proxies(Some(p:1))");
    }
}
