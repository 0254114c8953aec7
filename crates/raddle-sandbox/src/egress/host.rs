//! Parses hosts once, into a canonical form.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest name, and longest label, in the domain name system.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A name in canonical form, or an address.
///
/// There is one spelling for each. It is the parsed text, letter case aside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name of lower-case labels. It never looks like an address.
    Name(String),
    /// An IP address of either version.
    Address(IpAddr),
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EgressTarget {
    /// A name or an address.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

/// Reason why a text is not a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    /// The name, or a label of it, is empty.
    #[error("a part of the host name is empty")]
    Empty,
    /// The name or a label exceeds the limit.
    #[error("the host name is too long")]
    TooLong,
    /// It has a character other than letters, digits, hyphens, underscores and dots.
    #[error("the host has a character that no name has; write other scripts in their xn-- form")]
    Character,
    /// It ends like a number, and is not an address in the usual form.
    #[error("the host looks like an address; write it as four decimal numbers")]
    Number,
    /// The text in brackets is not an address.
    #[error("the text in brackets is not an IPv6 address without a zone")]
    Brackets,
    /// The port is not a number from 1 to 65535.
    #[error("the port is not a number from 1 to 65535")]
    Port,
}

impl Host {
    /// Parses a host as a URL or a `CONNECT` spells it: IPv6 addresses are in brackets.
    pub fn parse(text: &str) -> Result<Self, BadHost> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(BadHost::Brackets)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| BadHost::Brackets)?;
            return Ok(Self::Address(address.into()));
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(BadHost::TooLong);
        }
        let labels: Vec<&str> = text.split('.').collect();
        for label in &labels {
            let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
            match label.len() {
                0 => return Err(BadHost::Empty),
                1..=LABEL_BYTES_MAX => {}
                _ => return Err(BadHost::TooLong),
            }
            if !label.bytes().all(is_plain) {
                return Err(BadHost::Character);
            }
        }
        // Some programs read `127.1`, `0x7f000001` and `017700000001` as addresses. Here only the
        // usual form is one, and nothing that might be read as another is a name.
        if labels.last().is_some_and(|last| is_number(last)) {
            let address: Ipv4Addr = text.parse().map_err(|_| BadHost::Number)?;
            return Ok(Self::Address(address.into()));
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or(label.strip_prefix("0X"));
    label.bytes().all(|it| it.is_ascii_digit())
        || hexadecimal.is_some_and(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))
}

impl EgressTarget {
    /// Parses `HOST:PORT`, or `HOST` where there is a default port.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, BadHost> {
        let after_host = match text.find(']') {
            Some(end) => end + 1,
            None => text.find(':').unwrap_or(text.len()),
        };
        let (host, rest) = text.split_at(after_host);
        let port = match rest.strip_prefix(':') {
            Some(port) => number(port)?,
            None if rest.is_empty() => default_port.ok_or(BadHost::Port)?,
            None => return Err(BadHost::Character),
        };
        let host = Host::parse(host)?;
        Ok(Self { host, port })
    }
}

/// Parses a port of digits only: other parsers accept signs and spaces.
fn number(text: &str) -> Result<u16, BadHost> {
    if !text.bytes().all(|it| it.is_ascii_digit()) {
        return Err(BadHost::Port);
    }
    let port = text.parse().map_err(|_| BadHost::Port)?;
    if port == 0 {
        return Err(BadHost::Port);
    }
    Ok(port)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for EgressTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for (text, parsed) in [
            ("example.com", Ok("example.com")),
            ("EXAMPLE.Com", Ok("example.com")),
            ("xn--bcher-kva.example", Ok("xn--bcher-kva.example")),
            ("_dns.example.com", Ok("_dns.example.com")),
            ("localhost", Ok("localhost")),
            ("10.0.0.1", Ok("10.0.0.1")),
            ("1.2.3.example", Ok("1.2.3.example")),
            ("[2001:DB8::1]", Ok("[2001:db8::1]")),
            ("", Err(BadHost::Empty)),
            (".", Err(BadHost::Empty)),
            ("example.com.", Err(BadHost::Empty)),
            ("a..b", Err(BadHost::Empty)),
            ("evil.test\0.example.com", Err(BadHost::Character)),
            ("example.com\r\nHost: evil.test", Err(BadHost::Character)),
            ("evil.test%00.example.com", Err(BadHost::Character)),
            ("user@example.com", Err(BadHost::Character)),
            ("example.com/evil", Err(BadHost::Character)),
            ("example.com#", Err(BadHost::Character)),
            ("exam ple.com", Err(BadHost::Character)),
            ("b\u{fc}cher.example", Err(BadHost::Character)),
            ("\u{ff45}xample.com", Err(BadHost::Character)),
            ("example\u{3002}com", Err(BadHost::Character)),
            ("::1", Err(BadHost::Character)),
            ("127.1", Err(BadHost::Number)),
            ("2130706433", Err(BadHost::Number)),
            ("0x7f000001", Err(BadHost::Number)),
            ("0x7f.0.0.1", Err(BadHost::Number)),
            ("127.0.0.0x1", Err(BadHost::Number)),
            ("0177.0.0.1", Err(BadHost::Number)),
            ("1.2.3.4.5", Err(BadHost::Number)),
            ("256.0.0.1", Err(BadHost::Number)),
            ("example.0x", Err(BadHost::Number)),
            ("[::1", Err(BadHost::Brackets)),
            ("[fe80::1%eth0]", Err(BadHost::Brackets)),
            ("[127.0.0.1]", Err(BadHost::Brackets)),
        ] {
            let host = Host::parse(text).map(|host| host.to_string());
            assert_eq!(host, parsed.map(str::to_owned), "{text:?}");
        }
        let long = format!("{}.example", "a".repeat(64));
        assert_eq!(Host::parse(&long), Err(BadHost::TooLong));
        assert_eq!(Host::parse(&"a.".repeat(128)), Err(BadHost::TooLong));
    }

    #[test]
    fn targets() {
        for (text, default_port, parsed) in [
            ("example.com:443", None, Ok("example.com:443")),
            ("example.com", Some(80), Ok("example.com:80")),
            ("[::1]:8080", None, Ok("[::1]:8080")),
            ("[::1]", Some(80), Ok("[::1]:80")),
            ("example.com", None, Err(BadHost::Port)),
            ("example.com:", None, Err(BadHost::Port)),
            ("example.com:0", None, Err(BadHost::Port)),
            ("example.com:+443", None, Err(BadHost::Port)),
            ("example.com: 443", None, Err(BadHost::Port)),
            ("example.com:65536", None, Err(BadHost::Port)),
            ("example.com:443:80", None, Err(BadHost::Port)),
            ("example.com:80@evil.test:443", None, Err(BadHost::Port)),
            ("[::1]x:443", None, Err(BadHost::Character)),
        ] {
            let target = EgressTarget::parse(text, default_port).map(|target| target.to_string());
            assert_eq!(target, parsed.map(str::to_owned), "{text:?}");
        }
    }
}
