//! Requests of other protocols than those of models: any address, method and header, and the
//! response with any status.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HOST, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, Uri};

use super::pool::{HttpPool, RemoteHost};
use super::proxy::Proxies;
use super::{HttpAnswer, HttpTarget, ModelClient, Secrets};
use crate::io::PublicTcp;
use crate::{CallError, CallTimeouts};

/// The body of a response that is being received. Dropping it before its end closes the connection.
#[derive(Debug)]
pub struct ResponseBody {
    /// `None` after the end.
    answer: Option<HttpAnswer>,
}

impl ModelClient {
    /// Builds a client that connects to public addresses only, through the proxy that the
    /// environment names. A proxy resolves names itself, so it must reject private addresses.
    pub fn public_only() -> Self {
        let pool = HttpPool::new(Arc::new(PublicTcp), Proxies::of_environment());
        Self {
            pool: Arc::new(pool),
        }
    }

    /// Sends a request to the absolute address in it, and returns the response with any status.
    /// Redirects are not followed. The body has no limit but those of the caller.
    pub async fn send_request(
        &self,
        request: Request<Bytes>,
        limits: CallTimeouts,
    ) -> Result<Response<ResponseBody>, CallError> {
        let (mut head, body) = request.into_parts();
        let address = address_of(&head.uri);
        let invalid = |what: &str| CallError::Connect {
            address: address.clone(),
            what: what.to_owned(),
        };
        let remote = RemoteHost::of(&head.uri).map_err(|it| invalid(it.0))?;
        let host = HeaderValue::try_from(authority_of(&head.uri));
        let host = host.map_err(|_| invalid("its host cannot be one"))?;
        head.headers.insert(HOST, host);
        let root = || PathAndQuery::from_static("/");
        let path = head.uri.path_and_query().cloned().unwrap_or_else(root);
        head.uri = Uri::from(path);
        let secrets = Arc::new(Secrets::default());
        let target = HttpTarget {
            remote: &remote,
            address,
            secrets: &secrets,
        };
        let request = Request::from_parts(head, Full::new(body));
        let (head, mut answer) = self.transfer(target, request, limits).await?;
        answer.bytes_left = usize::MAX;
        let (head, ()) = head.into_parts();
        let answer = Some(answer);
        Ok(Response::from_parts(head, ResponseBody { answer }))
    }
}

impl ResponseBody {
    /// Returns the next bytes; `None` at the end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some(answer) = &mut self.answer else {
            return Ok(None);
        };
        let chunk = answer.next_chunk().await?;
        answer.renew_deadline();
        if chunk.is_none() {
            self.end();
        }
        Ok(chunk)
    }

    /// Discards the rest. The connection is kept if the rest arrives soon.
    pub fn discard(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(answer) = self.answer.take() {
            answer.end();
        }
    }
}

/// Returns host and port as the address has them, without a user.
fn authority_of(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    match uri.port_u16() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Returns an address without its user and query, which may be secrets.
fn address_of(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    format!("{scheme}://{}{}", authority_of(uri), uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_without_secrets() {
        for (address, expected) in [
            ("https://a.org", "https://a.org/"),
            (
                "https://me:sekret@a.org:8/b/?key=sekret",
                "https://a.org:8/b/",
            ),
            ("http://[::1]:9/b#c", "http://[::1]:9/b"),
        ] {
            let uri: Uri = address.parse().expect("an address");
            assert_eq!(address_of(&uri), expected);
        }
    }
}
