//! Requests to addresses that a server's metadata names. A public server cannot make Raddle call
//! an address of this machine or its networks.

use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode, Uri};
use raddle_model::{CallTimeouts, ModelClient, is_public};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::lookup_host;

use super::super::http::{HttpError, parse_url, port, read};
use super::error::OauthError;

/// Limit: OAuth metadata or tokens; beyond it, the login fails.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// Timeouts of a request.
const TIMEOUTS: CallTimeouts = CallTimeouts {
    connect: Duration::from_secs(10),
    idle: Duration::from_secs(30),
    total: Duration::from_secs(60),
};

/// The client for metadata of public servers.
static PUBLIC_CLIENT: LazyLock<ModelClient> = LazyLock::new(ModelClient::public_only);

/// Calls the addresses of a server's OAuth.
#[derive(Clone, Debug)]
pub(super) struct Fetcher {
    client: ModelClient,
    allowed: AllowedAddresses,
}

/// The addresses that may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedAddresses {
    /// Public addresses, with TLS.
    Public,
    /// All addresses, because the configured server is not public itself.
    Any,
}

/// A request body, and its credentials.
pub(super) struct Document {
    pub(super) kind: &'static str,
    pub(super) body: String,
    pub(super) authorization: Option<HeaderValue>,
}

impl Fetcher {
    /// Builds a client for the OAuth of a server.
    pub(super) async fn new(server: &Uri, client: &ModelClient) -> Self {
        match is_private(server).await {
            true => Self {
                client: client.clone(),
                allowed: AllowedAddresses::Any,
            },
            false => Self {
                client: PUBLIC_CLIENT.clone(),
                allowed: AllowedAddresses::Public,
            },
        }
    }

    /// Checks an address that a server named.
    pub(super) fn check(&self, address: &str) -> Result<Uri, OauthError> {
        self.allowed.check(address)
    }

    /// Gets a JSON document; `None` if there is none.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        address: &str,
    ) -> Result<Option<T>, OauthError> {
        let uri = self.check(address)?;
        let (status, bytes) = self.send(Method::GET, uri, None).await?;
        if !status.is_success() {
            return Ok(None);
        }
        // Some servers respond to every address with the page of their application.
        let Ok(document) = serde_json::from_slice::<Value>(&bytes) else {
            return Ok(None);
        };
        let document = serde_json::from_value(document);
        document.map(Some).map_err(|error| OauthError::Metadata {
            address: address.to_owned(),
            what: error.to_string(),
        })
    }

    /// Posts a document, and returns the status and the body of the response.
    pub(super) async fn post(
        &self,
        address: &str,
        document: Document,
    ) -> Result<(StatusCode, Vec<u8>), OauthError> {
        let uri = self.check(address)?;
        self.send(Method::POST, uri, Some(document)).await
    }

    /// Sends a request. Redirects are not followed.
    async fn send(
        &self,
        method: Method,
        uri: Uri,
        document: Option<Document>,
    ) -> Result<(StatusCode, Vec<u8>), OauthError> {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(document) = document {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(document.kind));
            if let Some(value) = document.authorization {
                headers.insert(AUTHORIZATION, value);
            }
            *request.body_mut() = document.body.into();
        }
        let response = self.client.send_request(request, TIMEOUTS).await;
        let response = response.map_err(HttpError::from)?;
        let status = response.status();
        let bytes = read(response.into_body(), DOCUMENT_BYTES_MAX).await?;
        Ok((status, bytes))
    }
}

impl AllowedAddresses {
    fn check(self, address: &str) -> Result<Uri, OauthError> {
        let uri = parse_url(address)?;
        let what = match self {
            Self::Any => None,
            Self::Public if uri.scheme_str() != Some("https") => Some("it has no TLS"),
            Self::Public if is_private_name(&uri) == Some(true) => Some("it is not public"),
            Self::Public => None,
        };
        match what {
            Some(what) => Err(OauthError::Refused {
                address: address.to_owned(),
                what,
            }),
            None => Ok(uri),
        }
    }
}

/// Returns whether a server is on this machine or in its networks.
async fn is_private(server: &Uri) -> bool {
    if let Some(is_private) = is_private_name(server) {
        return is_private;
    }
    let host = server.host().unwrap_or_default();
    // A name that cannot be resolved here, but perhaps by a proxy, counts as public.
    let Ok(addresses) = lookup_host((host, port(server))).await else {
        return false;
    };
    let mut addresses = addresses.peekable();
    addresses.peek().is_some() && addresses.all(|it| !is_public(it.ip()))
}

/// Returns whether a host is private, if its name shows that.
fn is_private_name(uri: &Uri) -> Option<bool> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some(!is_public(address));
    }
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_local = name == "localhost" || name.ends_with(".localhost");
    is_local.then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_server_reaches_public_addresses_only() {
        for (address, is_accepted) in [
            ("https://a.org/token", true),
            ("https://1.1.1.1/token", true),
            ("http://a.org/token", false),
            ("https://localhost/token", false),
            ("https://LOCALHOST./token", false),
            ("https://a.localhost/token", false),
            ("https://127.0.0.1/token", false),
            ("https://10.0.0.1/token", false),
            ("https://169.254.169.254/latest", false),
            ("https://[::1]/token", false),
            ("https://[::ffff:10.0.0.1]/token", false),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
        ] {
            let is_public = AllowedAddresses::Public.check(address).is_ok();
            assert_eq!(is_public, is_accepted, "{address}");
        }
        assert!(
            AllowedAddresses::Any
                .check("http://127.0.0.1:9/token")
                .is_ok()
        );
        assert!(AllowedAddresses::Any.check("javascript:alert(1)").is_err());
    }
}
