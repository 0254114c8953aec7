//! One request to a vendor, and the stream of its answer.

use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::CallError;

/// How long it may take to reach the vendor.
const CONNECT: Duration = Duration::from_secs(20);

/// How long the vendor may think before its answer begins, and be silent in the middle of it.
pub(crate) const IDLE: Duration = Duration::from_secs(300);

/// How much of a refusal is kept.
const REFUSAL_BYTES_MAX: usize = 4 << 10;

/// Where a vendor's interface is, and how to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    host: String,
    port: u16,
    path: String,
    /// Sent as a bearer token.
    pub key: Option<String>,
}

/// What is wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` cannot be a model's base_url: {what}")]
pub struct EndpointError {
    address: String,
    what: &'static str,
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(address: &str) -> Result<Self, EndpointError> {
        let wrong = |what| EndpointError {
            address: address.to_owned(),
            what,
        };
        let uri: Uri = address
            .parse()
            .map_err(|_| wrong("it is not an address; write one like http://127.0.0.1:8080/v1"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("only http:// is supported so far"));
        }
        let host = uri.host().ok_or_else(|| wrong("it names no host"))?;
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(80),
            path: uri.path().trim_end_matches('/').to_owned(),
            key: None,
        })
    }
}

impl Endpoint {
    /// Posts a JSON body to a path below the base, and answers with the head of a good answer.
    pub(crate) async fn post(
        &self,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, CallError> {
        let address = format!("http://{}:{}{}{path}", self.host, self.port, self.path);
        let unreachable = |what: String| CallError::Connect {
            address: address.clone(),
            what,
        };
        let connect = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(CONNECT, connect)
            .await
            .map_err(|_| unreachable("no connection in time".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        let _ = stream.set_nodelay(true);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        // It ends with the answer, or when the answer is dropped.
        tokio::spawn(connection);
        let mut request = Request::post(format!("{}{path}", self.path))
            .header("host", format!("{}:{}", self.host, self.port))
            .header("content-type", "application/json")
            .header("accept", "text/event-stream");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| unreachable(error.to_string()))?;
        let response = timeout(IDLE, sender.send_request(request))
            .await
            .map_err(|_| unreachable("no answer in time".to_owned()))?
            .map_err(|error| unreachable(error.to_string()))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), REFUSAL_BYTES_MAX);
        let body = timeout(CONNECT, body.collect()).await;
        let body = body.ok().and_then(Result::ok).map(|body| body.to_bytes());
        Err(CallError::Refused {
            status,
            body: String::from_utf8_lossy(&body.unwrap_or_default()).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (address, wanted) in [
            ("http://127.0.0.1:8080/v1", Some(("127.0.0.1", 8080, "/v1"))),
            ("http://localhost/v1/", Some(("localhost", 80, "/v1"))),
            ("http://[::1]:9/", Some(("::1", 9, ""))),
            ("https://example.org/v1", None),
            ("/v1", None),
            ("", None),
        ] {
            let found = address.parse::<Endpoint>().ok();
            let found = found
                .as_ref()
                .map(|it| (it.host.as_str(), it.port, it.path.as_str()));
            assert_eq!(found, wanted, "{address}");
        }
    }
}
