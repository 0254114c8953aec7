//! The address of a vendor's API, and its credentials.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Secrets;
use super::pool::RemoteHost;
use crate::CallError;

/// Characters that are escaped: all but the unreserved ones of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The address of a vendor's API, and the headers and query of every request to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(super) remote: RemoteHost,
    path: String,
    query: String,
    headers: HeaderMap,
    /// Values that must not appear in errors.
    pub(super) secrets: Arc<Secrets>,
}

/// Error in an address or a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address is invalid.
    #[error("`{address}` is not a valid base_url: {what}")]
    Address {
        /// The address, with possible secrets redacted.
        address: String,
        /// The problem with it.
        what: &'static str,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent: {what}")]
    Header {
        /// The name of the header.
        name: String,
        /// The problem with it.
        what: &'static str,
    },
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(address: &str) -> Result<Self, EndpointError> {
        let error = |what| EndpointError::Address {
            address: redacted(address),
            what,
        };
        let uri: Uri = address
            .parse()
            .map_err(|_| error("it is not an address; write one like http://127.0.0.1:8080/v1"))?;
        let remote = RemoteHost::of(&uri).map_err(|it| error(it.0))?;
        let host = uri.host().unwrap_or_default();
        let host_header = HeaderValue::try_from(format!("{host}:{}", remote.port));
        let host_header = host_header.map_err(|_| error("its host cannot be one"))?;
        Ok(Self {
            remote,
            path: uri.path().trim_end_matches('/').to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            headers: HeaderMap::from_iter([(HOST, host_header)]),
            secrets: Arc::new(secrets_of(uri.query().unwrap_or_default())),
        })
    }
}

impl Endpoint {
    /// Host and port, if the host is this machine by its name or address.
    pub fn loopback(&self) -> Option<(&str, u16)> {
        let RemoteHost { host, port, .. } = &self.remote;
        let is_loopback = host.parse().is_ok_and(|it: IpAddr| it.is_loopback());
        (is_loopback || host == "localhost").then_some((host.as_str(), *port))
    }

    /// Adds a key as a bearer token.
    pub fn with_key(self, key: &str) -> Result<Self, EndpointError> {
        let mut endpoint = self.with_header(AUTHORIZATION.as_str(), &format!("Bearer {key}"))?;
        Arc::make_mut(&mut endpoint.secrets).add(key);
        Ok(endpoint)
    }

    /// Adds a header, whose value may be a secret.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, EndpointError> {
        let error = |what| EndpointError::Header {
            name: name.to_owned(),
            what,
        };
        Arc::make_mut(&mut self.secrets).add(value);
        let header: HeaderName = name
            .parse()
            .map_err(|_| error("its name is invalid; use letters, digits and `-`"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            error("its value has a character that is not printable ASCII; check its source")
        })?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// Adds a parameter to the query of each address.
    pub fn with_query(mut self, name: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query += &format!("{}={}", escaped(name), escaped(value));
        Arc::make_mut(&mut self.secrets).add(value);
        self
    }

    /// Redacts this value from errors.
    pub fn with_secret(mut self, value: &str) -> Self {
        Arc::make_mut(&mut self.secrets).add(value);
        self
    }

    /// Redacts the secrets of an error.
    pub(crate) fn redact(&self, error: CallError) -> CallError {
        self.secrets.redact_error(error)
    }

    /// Adds a header unless it has another value already.
    pub(crate) fn with_default_header(&self, name: &'static str, value: &'static str) -> Self {
        let mut endpoint = self.clone();
        let value = HeaderValue::from_static(value);
        let entry = endpoint.headers.entry(HeaderName::from_static(name));
        entry.or_insert(value);
        endpoint
    }

    /// Returns the path below the base that addresses the base itself.
    pub(super) fn base_path(&self) -> &'static str {
        if self.path.is_empty() { "/" } else { "" }
    }

    /// Returns the address of a path below the base, without possible secrets.
    pub(super) fn address(&self, path: &str) -> String {
        let RemoteHost {
            host,
            port,
            is_safe,
        } = &self.remote;
        let scheme = if *is_safe { "https" } else { "http" };
        format!("{scheme}://{host}:{port}{}{path}", self.path)
    }

    /// Builds a request to a path below the base.
    pub(super) fn request<B>(
        &self,
        method: &Method,
        path: &str,
        body: B,
    ) -> Result<Request<B>, hyper::http::Error> {
        let mut target = format!("{}{path}", self.path);
        if !self.query.is_empty() {
            target.push('?');
            target.push_str(&self.query);
        }
        let is_post = method == Method::POST;
        let mut request = Request::builder().method(method).uri(target);
        if is_post {
            request = request.header("content-type", "application/json");
        }
        let accept = match is_post {
            true => "text/event-stream",
            false => "application/json",
        };
        let mut request = request.header("accept", accept).body(body)?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }
}

/// Returns the values of a query, any of which may be a key.
fn secrets_of(query: &str) -> Secrets {
    let mut secrets = Secrets::default();
    for (_, value) in query.split('&').filter_map(|it| it.split_once('=')) {
        secrets.add(value);
    }
    secrets
}

/// Redacts possible secrets of an address: its query, and everything after the scheme if it may
/// name a user.
pub fn redacted(address: &str) -> String {
    let secret = match address.contains('@') {
        true => address.find("://").map(|at| at + "://".len()).or(Some(0)),
        false => address.find(['?', '#']),
    };
    match secret {
        Some(at) => format!("{}…", &address[..at]),
        None => address.to_owned(),
    }
}

/// Percent-encodes a text for one segment of a path, or for a query.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (address, expected) in [
            ("http://127.0.0.1:8080/v1", Some(("127.0.0.1", 8080, "/v1"))),
            ("http://localhost/v1/", Some(("localhost", 80, "/v1"))),
            ("http://[::1]:9/", Some(("::1", 9, ""))),
            ("https://example.org/v1", Some(("example.org", 443, "/v1"))),
            ("https://example.org:8443", Some(("example.org", 8443, ""))),
            ("ftp://example.org/v1", None),
            ("/v1", None),
            ("", None),
        ] {
            let endpoint = address.parse::<Endpoint>().ok();
            let parts = endpoint
                .as_ref()
                .map(|it| (it.remote.host.as_str(), it.remote.port, it.path.as_str()));
            assert_eq!(parts, expected, "{address}");
        }
    }

    #[test]
    fn an_invalid_address_is_named_without_secrets() {
        for (address, named) in [
            ("ftp://example.org/v1", "`ftp://example.org/v1`"),
            ("ftp://example.org/v1?key=sekret", "`ftp://example.org/v1…`"),
            ("ftp://example.org/v1?key=sek@ret", "`ftp://…`"),
            ("ftp://me:sekret@example.org/v1", "`ftp://…`"),
            ("http://me:sek?ret@example .org/v1", "`http://…`"),
            ("me:sekret@example.org", "`…`"),
        ] {
            let error = address.parse::<Endpoint>().expect_err("no address");
            assert!(error.to_string().starts_with(named), "{error}");
        }
    }

    #[test]
    fn requests_have_their_headers_and_show_no_secret() {
        let endpoint: Endpoint = "http://localhost:1/v1?a=b".parse().expect("an address");
        let endpoint = endpoint
            .with_key("sekret")
            .and_then(|it| it.with_header("X-Team", "sekret too"))
            .expect("headers")
            .with_query("api-version", "2026 & on");
        assert!(!format!("{endpoint:?}").contains("sekret"), "{endpoint:?}");
        let request = endpoint
            .request(&Method::POST, "/responses", ())
            .expect("a request");
        assert_eq!(
            request.uri(),
            "/v1/responses?a=b&api-version=2026%20%26%20on"
        );
        assert_eq!(request.headers()["host"], "localhost:1");
        assert_eq!(request.headers()["authorization"], "Bearer sekret");
        assert_eq!(request.headers()["x-team"], "sekret too");
        for (name, value, expected) in [
            (
                "a b",
                "c",
                "the header `a b` cannot be sent: its name is invalid; use letters, digits and `-`",
            ),
            (
                "a",
                "b\r\nc: d",
                "the header `a` cannot be sent: its value has a character that is not printable ASCII; check its source",
            ),
        ] {
            let error = endpoint.clone().with_header(name, value).expect_err(name);
            assert_eq!(error.to_string(), expected);
        }
    }
}
