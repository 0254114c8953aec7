//! The value of `--listen`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Address to listen on, as given to `--listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// Stdin and stdout of this process: `stdio://`.
    Stdio,
    /// A unix socket: `unix://` for the default path, or `unix://PATH`.
    Unix(Option<PathBuf>),
    /// A websocket: `ws://IP:PORT`.
    Websocket(SocketAddr),
    /// No listener: `off`.
    Off,
}

/// Reason why a `--listen` value is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenAddressError {
    /// The address names no known transport.
    #[error("unknown transport `{0}`; use stdio://, unix://, unix://PATH, ws://IP:PORT or off")]
    Unknown(String),
    /// Not a literal IP address and port.
    #[error("`{0}` is not an address; write an IP and a port, like ws://127.0.0.1:4500")]
    NotAnAddress(String),
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, ListenAddressError> {
        if let Some(address) = text.strip_prefix("ws://") {
            let address = address.strip_suffix('/').unwrap_or(address);
            return address
                .parse()
                .map(Self::Websocket)
                .map_err(|_| ListenAddressError::NotAnAddress(text.to_owned()));
        }
        match text.strip_prefix("unix://") {
            Some("") => return Ok(Self::Unix(None)),
            Some(path) => return Ok(Self::Unix(Some(path.into()))),
            None => {}
        }
        match text {
            "stdio://" | "stdio" => Ok(Self::Stdio),
            "off" => Ok(Self::Off),
            _ => Err(ListenAddressError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("stdio://"),
            Self::Unix(None) => f.write_str("unix://"),
            Self::Unix(Some(path)) => write!(f, "unix://{}", path.display()),
            Self::Websocket(address) => write!(f, "ws://{address}"),
            Self::Off => f.write_str("off"),
        }
    }
}
