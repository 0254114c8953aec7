//! A login, renewals and hostile metadata, against a server on this machine.

use std::path::Path;
use std::sync::{Arc, Mutex};

use raddle_config::{McpCallback, McpClientAuth, McpOauth};
use raddle_model::ModelClient;
use raddle_model::oauth::parse_query;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::http::TokenSource as _;
use super::super::http::tests::{reply, serve};
use super::grant::{ClientAuth, OauthClient};
use super::store::{ServerCredential, TokenStore};
use super::*;

/// Requests that an authorization server received.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// Serves an MCP server and its authorization server, which issues numbered tokens.
async fn authorization_server() -> (String, Requests) {
    let requests = Requests::default();
    let seen = requests.clone();
    let url = serve(move |head, body| {
        let mut seen = seen.lock().expect("a lock");
        let path = head.uri.path().to_owned();
        let host = head.headers["host"].to_str().expect("a host");
        let number = seen.iter().filter(|(it, _)| *it == "/token").count();
        seen.push((path.clone(), body));
        let base = format!("http://{host}");
        let response = match &*path {
            "/.well-known/oauth-protected-resource/mcp" => json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [base],
                "scopes_supported": ["read", "write"],
            }),
            "/.well-known/oauth-authorization-server" => json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "code_challenge_methods_supported": ["S256"],
            }),
            "/register" => json!({"client_id": "raddle-1"}),
            "/token" => json!({
                "access_token": format!("access-{number}"),
                "refresh_token": format!("refresh-{number}"),
                "token_type": "Bearer",
                "expires_in": 3600,
            }),
            _ => return reply(404, &[], ""),
        };
        reply(
            200,
            &[("content-type", "application/json")],
            response.to_string(),
        )
    })
    .await;
    (url, requests)
}

fn tokens(home: &Path, url: &str) -> ServerTokens {
    ServerTokens::new(home, "test", url, ModelClient::new())
}

fn bodies(requests: &Requests, path: &str) -> Vec<Value> {
    let requests = requests.lock().expect("a lock");
    let matching = requests.iter().filter(|(it, _)| it == path);
    matching.map(|(_, body)| body.clone()).collect()
}

/// Returns a parameter of an authorization page or of a form.
fn parameter(text: &str, name: &str) -> String {
    let query = text.split_once('?').map_or(text, |(_, query)| query);
    let pairs = parse_query(query);
    let pair = pairs.into_iter().find(|(it, _)| it == name);
    pair.map(|(_, value)| value).unwrap_or_default()
}

/// Follows the redirect of an authorization page, as a browser does after the user agreed.
async fn agree(page: &str) {
    let value = |name: &str| parameter(page, name);
    assert_eq!(value("code_challenge_method"), "S256");
    let redirect = value("redirect_uri");
    let address = redirect.trim_start_matches("http://");
    let (address, path) = address.split_once('/').expect("a path");
    let mut browser = TcpStream::connect(address).await.expect("a connection");
    let request = format!(
        "GET /{path}?code=c&state={} HTTP/1.1\r\nhost: {address}\r\n\r\n",
        value("state")
    );
    browser.write_all(request.as_bytes()).await.expect("sent");
    let mut response = String::new();
    let read = browser.read_to_string(&mut response).await;
    read.expect("a page");
    assert!(response.contains("You are signed in"), "{response}");
}

#[tokio::test]
async fn a_login_stores_tokens_that_are_renewed_when_rejected() {
    let home = tempfile::tempdir().expect("a home");
    let (base, requests) = authorization_server().await;
    let tokens = tokens(home.path(), &format!("{base}/mcp"));
    assert_eq!(tokens.token(None).await.expect("none"), None);
    let login = start_login(&tokens, LoginOptions::default()).await;
    let StartedLogin { page, end } = login.expect("a page");
    assert_eq!(parameter(&page, "client_id"), "raddle-1");
    assert_eq!(parameter(&page, "scope"), "read write");
    let (ended, ()) = tokio::join!(end, agree(&page));
    ended.expect("a login");
    let token = tokens.token(None).await.expect("a token");
    assert_eq!(token.as_deref(), Some("access-0"));
    let token = tokens.token(Some("access-0")).await.expect("a token");
    assert_eq!(token.as_deref(), Some("access-1"));
    let forms = bodies(&requests, "/token");
    let forms: Vec<_> = forms.iter().filter_map(Value::as_str).collect();
    let resource = |form: &str| {
        let pairs = parse_query(form);
        pairs.into_iter().find(|(name, _)| name == "resource")
    };
    for form in &forms {
        let (_, resource) = resource(form).expect("a resource");
        assert_eq!(resource, format!("{base}/mcp"));
    }
    assert!(forms[0].contains("code_verifier="), "{forms:?}");
    assert!(forms[1].contains("refresh_token=refresh-0"), "{forms:?}");
    assert!(tokens.log_out().await.expect("a file"));
    assert!(!tokens.is_logged_in().await.expect("a file"));
}

#[tokio::test]
async fn a_login_follows_the_settings_of_its_server() {
    let home = tempfile::tempdir().expect("a home");
    let (base, requests) = authorization_server().await;
    let tokens = tokens(home.path(), &format!("{base}/mcp"));
    let oauth = McpOauth {
        client_id: Some("mine".to_owned()),
        client_secret: Some("s&t".to_owned()),
        client_auth: Some(McpClientAuth::Post),
        scopes: vec!["a".to_owned(), "b".to_owned()],
        resource: Some("https://r.example/".to_owned()),
        issuer: Some(base.clone()),
        callback: Some(McpCallback {
            path: "/back/1".to_owned(),
            ..McpCallback::default()
        }),
    };
    let options = LoginOptions {
        oauth,
        challenge: None,
    };
    let StartedLogin { page, end } = start_login(&tokens, options).await.expect("a page");
    for (name, expected) in [
        ("client_id", "mine"),
        ("scope", "a b"),
        ("resource", "https://r.example/"),
    ] {
        assert_eq!(parameter(&page, name), expected, "{page}");
    }
    assert!(
        parameter(&page, "redirect_uri").ends_with("/back/1"),
        "{page}"
    );
    let (ended, ()) = tokio::join!(end, agree(&page));
    ended.expect("a login");
    assert_eq!(bodies(&requests, "/register"), Vec::<Value>::new());
    let forms = bodies(&requests, "/token");
    let form = forms[0].as_str().expect("a form");
    assert_eq!(parameter(form, "client_secret"), "s&t");
    let options = LoginOptions {
        oauth: McpOauth {
            issuer: Some("https://other.org".to_owned()),
            ..McpOauth::default()
        },
        challenge: None,
    };
    let error = start_login(&tokens, options).await.err().expect("an error");
    assert!(error.to_string().contains("https://other.org"), "{error}");
}

fn expired(base: &str) -> ServerCredential {
    ServerCredential {
        url: format!("{base}/mcp"),
        access: "expired".to_owned(),
        refresh: Some("refresh".to_owned()),
        expires_at: Some(1),
        token_url: format!("{base}/token"),
        resource: None,
        client: OauthClient {
            id: "raddle-1".to_owned(),
            secret: None,
            auth: ClientAuth::Public,
        },
    }
}

#[tokio::test]
async fn fifty_callers_renew_an_expired_token_once() {
    let home = tempfile::tempdir().expect("a home");
    let (base, requests) = authorization_server().await;
    let store = TokenStore::of(home.path());
    store.set("test", Some(expired(&base))).expect("stored");
    // Each has its own tokens, as separate processes do.
    let callers = (0..50).map(|_| {
        let tokens = tokens(home.path(), &format!("{base}/mcp"));
        tokio::spawn(async move { tokens.token(None).await })
    });
    let callers: Vec<_> = callers.collect();
    for caller in callers {
        let token = caller.await.expect("a caller").expect("a token");
        assert_eq!(token.as_deref(), Some("access-0"));
    }
    assert_eq!(bodies(&requests, "/token").len(), 1);
}

#[tokio::test]
async fn a_rejected_refresh_token_ends_the_login() {
    for (status, is_kept) in [(400, false), (503, true)] {
        let home = tempfile::tempdir().expect("a home");
        let base = serve(move |_, _| reply(status, &[], r#"{"error":"invalid_grant"}"#)).await;
        let store = TokenStore::of(home.path());
        store.set("test", Some(expired(&base))).expect("stored");
        let tokens = tokens(home.path(), &format!("{base}/mcp"));
        let token = tokens.token(None).await.ok();
        assert_eq!(token, (!is_kept).then_some(None), "{status}");
        assert_eq!(tokens.is_logged_in().await.expect("a file"), is_kept);
    }
}

#[tokio::test]
async fn metadata_of_another_resource_is_rejected() {
    let base = serve(|head, _| match head.uri.path() {
        "/.well-known/oauth-protected-resource/mcp" => {
            let metadata = json!({"resource": "https://other.org/mcp"}).to_string();
            reply(200, &[("content-type", "application/json")], metadata)
        }
        _ => reply(404, &[], ""),
    })
    .await;
    let home = tempfile::tempdir().expect("a home");
    let tokens = tokens(home.path(), &format!("{base}/mcp"));
    let login = start_login(&tokens, LoginOptions::default()).await;
    let error = login.err().expect("an error").to_string();
    assert!(error.contains("it is for https://other.org/mcp"), "{error}");
}
