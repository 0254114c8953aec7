//! Where a vendor's interface is, and how to be let in.

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};

use super::Secrets;
use super::pool::RemoteHost;
use crate::CallError;

/// Where a vendor's interface is, and what every request to it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(super) remote: RemoteHost,
    path: String,
    query: String,
    headers: HeaderMap,
    /// What of all this is nobody's business.
    pub(super) secrets: Arc<Secrets>,
}

/// What is wrong with an address, or with what should be said to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The address cannot be one.
    #[error("`{address}` cannot be a model's base_url: {what}")]
    Address {
        /// What was given, without what could be a secret.
        address: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent: {what}")]
    Header {
        /// Its name.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(address: &str) -> Result<Self, EndpointError> {
        let wrong = |what| EndpointError::Address {
            address: shown(address),
            what,
        };
        let uri: Uri = address
            .parse()
            .map_err(|_| wrong("it is not an address; write one like http://127.0.0.1:8080/v1"))?;
        let is_safe = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it must begin with https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        let usual = if is_safe { 443 } else { 80 };
        let (host, port) = (authority.host(), authority.port_u16().unwrap_or(usual));
        let named = HeaderValue::try_from(format!("{host}:{port}"));
        let named = named.map_err(|_| wrong("its host cannot be one"))?;
        Ok(Self {
            remote: RemoteHost {
                host: host.trim_matches(['[', ']']).to_owned(),
                port,
                is_safe,
            },
            path: uri.path().trim_end_matches('/').to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            headers: HeaderMap::from_iter([(HOST, named)]),
            secrets: Arc::new(secrets_of(uri.query().unwrap_or_default())),
        })
    }
}

impl Endpoint {
    /// Says this key as a bearer token.
    pub fn with_key(self, key: &str) -> Result<Self, EndpointError> {
        let mut endpoint = self.with_header(AUTHORIZATION.as_str(), &format!("Bearer {key}"))?;
        Arc::make_mut(&mut endpoint.secrets).add(key);
        Ok(endpoint)
    }

    /// Says this header, whose value may be a secret.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, EndpointError> {
        let wrong = |what| EndpointError::Header {
            name: name.to_owned(),
            what,
        };
        Arc::make_mut(&mut self.secrets).add(value);
        let header: HeaderName = name
            .parse()
            .map_err(|_| wrong("its name holds letters that no header may have"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            wrong("its value holds a line end or another letter that no header may have")
        })?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// Says this in the query of each address.
    pub fn with_query(mut self, name: &str, value: &str) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        escape(name, &mut self.query);
        self.query.push('=');
        escape(value, &mut self.query);
        Arc::make_mut(&mut self.secrets).add(value);
        self
    }

    /// Keeps this out of what is told of a call.
    pub fn with_secret(mut self, value: &str) -> Self {
        Arc::make_mut(&mut self.secrets).add(value);
        self
    }

    /// An error without what is nobody's business.
    pub(crate) fn redact(&self, error: CallError) -> CallError {
        self.secrets.redact_error(error)
    }

    /// Says this header unless it says another value for it.
    pub(crate) fn with_usual(&self, name: &'static str, value: &'static str) -> Self {
        let mut endpoint = self.clone();
        let value = HeaderValue::from_static(value);
        let entry = endpoint.headers.entry(HeaderName::from_static(name));
        entry.or_insert(value);
        endpoint
    }

    /// The path of the base itself below it.
    pub(super) fn base_path(&self) -> &'static str {
        if self.path.is_empty() { "/" } else { "" }
    }

    /// The address of a path below the base, without what could be a secret.
    pub(super) fn address(&self, path: &str) -> String {
        let RemoteHost {
            host,
            port,
            is_safe,
        } = &self.remote;
        let scheme = if *is_safe { "https" } else { "http" };
        format!("{scheme}://{host}:{port}{}{path}", self.path)
    }

    /// A request to a path below the base.
    pub(super) fn request<B>(
        &self,
        method: &Method,
        path: &str,
        body: B,
    ) -> Result<Request<B>, String> {
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
        let request = request.header("accept", accept).body(body);
        let mut request = request.map_err(|error| error.to_string())?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }
}

/// The values of a query, any of which may be a key.
fn secrets_of(query: &str) -> Secrets {
    let mut secrets = Secrets::default();
    for (_, value) in query.split('&').filter_map(|it| it.split_once('=')) {
        secrets.add(value);
    }
    secrets
}

/// An address without what could be a secret: its query, and all after the scheme if it may name a user.
fn shown(address: &str) -> String {
    let secret = match address.contains('@') {
        true => address.find("://").map(|at| at + "://".len()).or(Some(0)),
        false => address.find(['?', '#']),
    };
    match secret {
        Some(at) => format!("{}…", &address[..at]),
        None => address.to_owned(),
    }
}

/// A text as one step of a path may have it.
pub(crate) fn escaped(text: &str) -> String {
    let mut path = String::new();
    escape(text, &mut path);
    path
}

/// Writes a text as a query may have it.
fn escape(text: &str, query: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                query.push(byte as char);
            }
            _ => drop(write!(query, "%{byte:02X}")),
        }
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
            ("https://example.org/v1", Some(("example.org", 443, "/v1"))),
            ("https://example.org:8443", Some(("example.org", 8443, ""))),
            ("ftp://example.org/v1", None),
            ("/v1", None),
            ("", None),
        ] {
            let found = address.parse::<Endpoint>().ok();
            let found = found
                .as_ref()
                .map(|it| (it.remote.host.as_str(), it.remote.port, it.path.as_str()));
            assert_eq!(found, wanted, "{address}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_one_is_named_without_secrets() {
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
    fn requests_say_what_was_asked_for_and_show_no_secret() {
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
        for (name, value) in [("a b", "c"), ("a", "b\r\nc: d")] {
            assert!(endpoint.clone().with_header(name, value).is_err());
        }
    }
}
