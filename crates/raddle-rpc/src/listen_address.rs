//! What `--listen` says.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where to listen, as `--listen` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// The process that started us: `stdio://`.
    Stdio,
    /// A unix socket: `unix://` for the default one, or `unix://PATH`.
    Unix(Option<PathBuf>),
    /// A websocket: `ws://IP:PORT`.
    Websocket(SocketAddr),
    /// Nowhere: `off`.
    Off,
}

/// What is wrong with a `--listen` value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenAddressError {
    /// No transport of that name.
    #[error("unknown transport `{0}`; use stdio://, unix://, unix://PATH, ws://IP:PORT or off")]
    Unknown(String),
    /// A websocket needs a literal address.
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
