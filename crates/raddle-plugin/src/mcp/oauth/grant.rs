//! Registration of Raddle as a client, and grants of tokens.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use raddle_model::oauth::{self, OauthTokens};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::discovery::IssuerMetadata;
use super::error::OauthError;
use super::fetcher::{Document, Fetcher};

/// Characters shown of a server's error.
const TEXT_CHARS_MAX: usize = 300;

const FORM: &str = "application/x-www-form-urlencoded";

/// The client as which Raddle is registered. `Debug` is absent because the secret is one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OauthClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) auth: ClientAuth,
}

/// How a client authenticates itself at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ClientAuth {
    /// By nothing but its id.
    Public,
    /// By a secret in the form.
    Post,
    /// By a secret in a header.
    Basic,
}

impl ClientAuth {
    /// Selects a method that the authorization server supports.
    pub(super) fn of(has_secret: bool, supported: Option<&[String]>) -> Self {
        let is_supported = |name: &str| supported.is_some_and(|it| it.iter().any(|it| it == name));
        match has_secret {
            false => Self::Public,
            true if is_supported("client_secret_post") => Self::Post,
            // The default of RFC 8414.
            true => Self::Basic,
        }
    }

    /// Selects the method to register: none, unless the authorization server requires a secret.
    fn requested(supported: Option<&[String]>) -> Self {
        let needs_secret = supported.is_some_and(|it| !it.iter().any(|it| it == "none"));
        Self::of(needs_secret, supported)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Public => "none",
            Self::Post => "client_secret_post",
            Self::Basic => "client_secret_basic",
        }
    }
}

/// Response of a registration.
#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Error response of a token or registration endpoint.
#[derive(Default, Deserialize)]
struct ErrorResponse {
    error: Option<String>,
    error_description: Option<String>,
}

/// Registers Raddle with an authorization server (RFC 7591).
pub(super) async fn register(
    fetcher: &Fetcher,
    issuer: &IssuerMetadata,
    redirect_uri: &str,
    scopes: Option<&str>,
) -> Result<OauthClient, OauthError> {
    let endpoint = issuer.registration_endpoint.as_deref();
    let endpoint = endpoint.ok_or(OauthError::NoRegistration)?;
    let supported = issuer.token_endpoint_auth_methods_supported.as_deref();
    let mut client = json!({
        "client_name": "Raddle",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": ClientAuth::requested(supported).name(),
    });
    if let Some(scopes) = scopes {
        client["scope"] = scopes.into();
    }
    let document = Document {
        kind: "application/json",
        body: client.to_string(),
        authorization: None,
    };
    let (status, bytes) = fetcher.post(endpoint, document).await?;
    if !status.is_success() {
        return Err(refusal(endpoint, status, &bytes));
    }
    let registration: Registration = parsed(endpoint, &bytes)?;
    let secret = registration.client_secret.filter(|it| !it.is_empty());
    let auth = match registration.token_endpoint_auth_method.as_deref() {
        _ if secret.is_none() => ClientAuth::Public,
        Some("none") => ClientAuth::Public,
        Some("client_secret_post") => ClientAuth::Post,
        Some("client_secret_basic") => ClientAuth::Basic,
        _ => ClientAuth::of(true, supported),
    };
    Ok(OauthClient {
        id: registration.client_id,
        secret,
        auth,
    })
}

/// Requests tokens for a form.
pub(super) async fn request_tokens(
    fetcher: &Fetcher,
    endpoint: &str,
    client: &OauthClient,
    form: &[(&str, &str)],
) -> Result<OauthTokens, OauthError> {
    let document = token_request(client, form);
    let (status, bytes) = fetcher.post(endpoint, document).await?;
    match status.is_success() {
        true => parsed(endpoint, &bytes),
        false => Err(refusal(endpoint, status, &bytes)),
    }
}

fn token_request(client: &OauthClient, form: &[(&str, &str)]) -> Document {
    let mut form = form.to_vec();
    form.push(("client_id", &client.id));
    let secret = client.secret.as_deref().unwrap_or_default();
    let mut authorization = None;
    match client.auth {
        ClientAuth::Public => {}
        ClientAuth::Post => form.push(("client_secret", secret)),
        ClientAuth::Basic => {
            let pair = format!("{}:{}", escaped(&client.id), escaped(secret));
            let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
            authorization = HeaderValue::try_from(value).ok();
        }
    }
    Document {
        kind: FORM,
        body: oauth::form(&form),
        authorization,
    }
}

/// Escapes a text as in a form, as RFC 6749 requires it of basic authentication.
fn escaped(text: &str) -> String {
    let pair = oauth::form(&[("", text)]);
    pair.trim_start_matches('=').to_owned()
}

/// Parses a response. The error does not show it, because it may contain tokens.
fn parsed<T: for<'a> Deserialize<'a>>(endpoint: &str, bytes: &[u8]) -> Result<T, OauthError> {
    serde_json::from_slice(bytes).map_err(|_| OauthError::Unexpected {
        address: endpoint.to_owned(),
    })
}

/// Returns the error of a response. Only an error that OAuth defines rejects the request for good:
/// a proxy may have sent any other.
fn refusal(endpoint: &str, status: StatusCode, bytes: &[u8]) -> OauthError {
    let address = endpoint.to_owned();
    let is_final = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
    let response: ErrorResponse = serde_json::from_slice(bytes).unwrap_or_default();
    match response.error.filter(|_| is_final) {
        Some(error) => {
            let text = match response.error_description {
                Some(description) => format!("{error} ({description})"),
                None => error,
            };
            let what = text.chars().take(TEXT_CHARS_MAX).collect();
            OauthError::Rejected { address, what }
        }
        None => {
            let status = status.as_u16();
            OauthError::Unavailable { address, status }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_authenticate_themselves_as_registered() {
        for (secret, auth, body, authorization) in [
            (None, ClientAuth::Public, "a=b&client_id=me%3A1", None),
            (
                Some("s&t"),
                ClientAuth::Post,
                "a=b&client_id=me%3A1&client_secret=s%26t",
                None,
            ),
            (
                Some("s&t"),
                ClientAuth::Basic,
                "a=b&client_id=me%3A1",
                Some("Basic bWUlM0ExOnMlMjZ0"),
            ),
        ] {
            let client = OauthClient {
                id: "me:1".to_owned(),
                secret: secret.map(str::to_owned),
                auth,
            };
            let document = token_request(&client, &[("a", "b")]);
            assert_eq!(document.body, body);
            let value = document.authorization.as_ref();
            let value = value.map(|it| it.to_str().expect("a text"));
            assert_eq!(value, authorization);
        }
    }

    #[test]
    fn a_secret_is_requested_only_where_it_is_required() {
        for (supported, expected) in [
            (None, "none"),
            (Some(&["client_secret_basic", "none"][..]), "none"),
            (Some(&["client_secret_basic"][..]), "client_secret_basic"),
            (
                Some(&["client_secret_basic", "client_secret_post"][..]),
                "client_secret_post",
            ),
        ] {
            let supported = supported.map(|it| {
                let names = it.iter().map(|it| (*it).to_owned());
                names.collect::<Vec<String>>()
            });
            let requested = ClientAuth::requested(supported.as_deref());
            assert_eq!(requested.name(), expected, "{supported:?}");
        }
    }

    #[test]
    fn only_rejections_are_final() {
        for (status, body, expected) in [
            (
                400,
                r#"{"error":"invalid_grant"}"#,
                "reported: invalid_grant",
            ),
            (401, "<html>", "try again later"),
            (429, "", "try again later"),
            (502, "<html>", "try again later"),
        ] {
            let code = StatusCode::from_u16(status).expect("a status");
            let error = refusal("https://a.org/token", code, body.as_bytes());
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.is_transient(), expected == "try again later");
        }
    }
}
