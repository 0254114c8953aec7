//! Signs in through a provider's pages, until it issues tokens.

use std::io;
use std::time::Duration;

use raddle_config::OAuth;
use raddle_core::ports::BoxFuture;
use raddle_model::oauth::{self, OauthTokens, PkcePair};
use raddle_model::{CallError, ModelClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The timeout for the user in a browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(600);

/// The timeout and the maximum size of the browser's redirect request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// The maximum number of concurrent connections: browsers open some without sending anything.
const CONNECTIONS_MAX: usize = 16;

/// The timeout for a device code, even if the provider gives it a longer lifetime.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Reason why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    #[error("`{key}` is not set under `oauth`; set it, or sign in another way")]
    NotConfigured { key: &'static str },
    #[error("cannot begin to sign in")]
    DeviceCode(#[source] CallError),
    #[error("the code was not entered in time")]
    CodeTimedOut,
    #[error("cannot listen for the browser")]
    Listen(#[source] io::Error),
    #[error(transparent)]
    Accept(#[from] io::Error),
    #[error("the sign-in timed out")]
    TimedOut,
    #[error("the provider reported: {0}")]
    Rejected(String),
    /// The vendor issued no tokens, or the system has no randomness.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A sign-in that has started.
pub(crate) struct StartedSignIn {
    pub(crate) page: String,
    pub(crate) code: Option<String>,
    pub(crate) tokens: BoxFuture<'static, Result<OauthTokens, SignInError>>,
}

/// Signs in with a code that the user can enter on any device.
pub(crate) async fn on_device(
    client: &ModelClient,
    oauth: &OAuth,
) -> Result<StartedSignIn, SignInError> {
    let url = needed(oauth.device_url.as_deref(), "device_url")?;
    let scopes = oauth.scopes.join(" ");
    let form = [("client_id", &*oauth.client_id), ("scope", &scopes)];
    let code = client.device_code(url, &form).await;
    let code = code.map_err(SignInError::DeviceCode)?;
    let (client, oauth) = (client.clone(), oauth.clone());
    Ok(StartedSignIn {
        page: code.verification_uri.clone(),
        code: Some(code.user_code.clone()),
        tokens: Box::pin(async move {
            let good = good_for(code.expires_in);
            let tokens = client.tokens_of_device(&oauth.token_url, &oauth.client_id, &code);
            match timeout(good, tokens).await {
                Ok(tokens) => Ok(tokens?),
                Err(_) => Err(SignInError::CodeTimedOut),
            }
        }),
    })
}

fn good_for(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(DEVICE_TIMEOUT)
}

/// Signs in with a browser on this machine, which is redirected to a local port.
pub(crate) async fn in_browser(
    client: &ModelClient,
    oauth: &OAuth,
) -> Result<StartedSignIn, SignInError> {
    let url = needed(oauth.authorize_url.as_deref(), "authorize_url")?;
    let proof = PkcePair::new()?;
    let state = oauth::random_token()?;
    let port = oauth.redirect_port.unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listener.map_err(SignInError::Listen)?;
    let here = listener.local_addr()?;
    let redirect_uri = format!("http://{here}/callback");
    let scopes = oauth.scopes.join(" ");
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", &oauth.client_id),
        ("redirect_uri", &redirect_uri),
        ("code_challenge", &proof.challenge),
        ("code_challenge_method", "S256"),
        ("state", &state),
    ];
    if !scopes.is_empty() {
        query.push(("scope", &scopes));
    }
    let page = oauth::address(url, &query);
    let (client, oauth) = (client.clone(), oauth.clone());
    Ok(StartedSignIn {
        page,
        code: None,
        tokens: Box::pin(async move {
            let code = timeout(BROWSER_TIMEOUT, redirect_code(&listener, &state)).await;
            let code = code.unwrap_or(Err(SignInError::TimedOut))?;
            let form = [
                ("grant_type", "authorization_code"),
                ("code", &*code),
                ("redirect_uri", &redirect_uri),
                ("client_id", &oauth.client_id),
                ("code_verifier", &proof.verifier),
            ];
            Ok(client.tokens(&oauth.token_url, &form).await?)
        }),
    })
}

fn needed<'a>(url: Option<&'a str>, key: &'static str) -> Result<&'a str, SignInError> {
    url.ok_or(SignInError::NotConfigured { key })
}

/// Waits for the browser's redirect and returns its code, or the provider's error.
async fn redirect_code(listener: &TcpListener, state: &str) -> Result<String, SignInError> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let (stream, _) = accepted?;
                connections.spawn(handle_connection(stream, state.to_owned()));
            }
            Some(done) = connections.join_next() => {
                if let Ok(Some(ended)) = done {
                    return ended;
                }
            }
        }
    }
}

/// Handles one connection. Returns `None` if its `state` is wrong.
async fn handle_connection(
    mut stream: TcpStream,
    state: String,
) -> Option<Result<String, SignInError>> {
    let query = timeout(REQUEST_TIMEOUT, read_query(&mut stream))
        .await
        .ok()??;
    let pairs = oauth::parse_query(&query);
    let value = |name: &str| {
        let pair = pairs.iter().find(|(it, _)| it == name);
        pair.map(|(_, value)| value.clone())
    };
    if value("state").as_deref() != Some(&*state) {
        let text = "This is not the page that you were sent to.";
        show(&mut stream, "400 Bad Request", text).await;
        return None;
    }
    let (ended, text) = match (value("code"), value("error")) {
        (Some(code), None) => (Ok(code), "You are signed in. You can close this page."),
        (_, error) => (
            Err(SignInError::Rejected(error.unwrap_or_default())),
            "You are not signed in. You can close this page.",
        ),
    };
    show(&mut stream, "200 OK", text).await;
    Some(ended)
}

/// Reads the query of the redirect request; `None` for any other request.
async fn read_query(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    while !read.windows(4).any(|it| it == b"\r\n\r\n") {
        if read.len() > REQUEST_BYTES_MAX || stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    let line = read.split(|it| *it == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let query = target.strip_prefix("/callback?")?;
    Some(query.to_owned())
}

async fn show(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // It does not matter whether the browser reads it.
    let _ = timeout(REQUEST_TIMEOUT, stream.write_all(page.as_bytes())).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_connection_does_not_block_the_redirect() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("an address");
        let _silent = TcpStream::connect(here).await.expect("a connection");
        let mut browser = TcpStream::connect(here).await.expect("a connection");
        let request = b"GET /callback?code=c&state=s HTTP/1.1\r\n\r\n";
        browser.write_all(request).await.expect("sent");
        let code = timeout(REQUEST_TIMEOUT / 2, redirect_code(&listener, "s")).await;
        assert_eq!(code.expect("in time").expect("a code"), "c");
    }

    #[test]
    fn a_code_is_waited_for_as_long_as_it_is_good_but_not_for_ever() {
        for (seconds, expected) in [(60, 60), (900, 900), (901, 900), (u64::MAX, 900)] {
            assert_eq!(good_for(seconds), Duration::from_secs(expected));
        }
    }
}
