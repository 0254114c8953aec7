//! Signing in through a provider's pages, until it gives tokens.

use std::time::Duration;

use raddle_core::ports::BoxFuture;
use raddle_model::ModelClient;
use raddle_model::oauth::{self, OauthTokens, PkcePair};
use raddle_server::OAuth;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long people may take with a page in a browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(600);

/// How long a browser may take to say what it was sent back with, and how much it may say.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// How many connections are listened to at once: browsers open some that they say nothing on.
const CONNECTIONS_MAX: usize = 16;

/// How long a code for a device is waited for, however long its provider says that it is good.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A sign-in that has begun.
pub(super) struct StartedSignIn {
    pub(super) page: String,
    pub(super) code: Option<String>,
    pub(super) tokens: BoxFuture<'static, Result<OauthTokens, String>>,
}

/// With a code that is entered anywhere.
pub(super) async fn on_device(
    client: &ModelClient,
    oauth: &OAuth,
) -> Result<StartedSignIn, String> {
    let url = needed(oauth.device_url.as_deref(), "device_url")?;
    let scopes = oauth.scopes.join(" ");
    let form = [("client_id", &*oauth.client_id), ("scope", &scopes)];
    let code = client.device_code(url, &form).await;
    let code = code.map_err(|error| format!("cannot begin to sign in: {error}"))?;
    let (client, oauth) = (client.clone(), oauth.clone());
    Ok(StartedSignIn {
        page: code.verification_uri.clone(),
        code: Some(code.user_code.clone()),
        tokens: Box::pin(async move {
            let good = good_for(code.expires_in);
            let given = client.tokens_of_device(&oauth.token_url, &oauth.client_id, &code);
            match timeout(good, given).await {
                Ok(given) => given.map_err(|error| error.to_string()),
                Err(_) => Err("nobody entered the code in time".to_owned()),
            }
        }),
    })
}

fn good_for(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(DEVICE_TIMEOUT)
}

/// In a browser on this machine, which is sent back to a port of ours.
pub(super) async fn in_browser(
    client: &ModelClient,
    oauth: &OAuth,
) -> Result<StartedSignIn, String> {
    let url = needed(oauth.authorize_url.as_deref(), "authorize_url")?;
    let proof = PkcePair::new().map_err(|error| error.to_string())?;
    let state = oauth::random_token().map_err(|error| error.to_string())?;
    let port = oauth.redirect_port.unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    let listener = listener.map_err(|error| format!("cannot listen for the browser: {error}"))?;
    let here = listener.local_addr().map_err(|error| error.to_string())?;
    let back = format!("http://{here}/callback");
    let scopes = oauth.scopes.join(" ");
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", &oauth.client_id),
        ("redirect_uri", &back),
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
            let code = timeout(BROWSER_TIMEOUT, sent_back(&listener, &state)).await;
            let code = code.unwrap_or_else(|_| Err("nobody signed in in time".to_owned()))?;
            let form = [
                ("grant_type", "authorization_code"),
                ("code", &*code),
                ("redirect_uri", &back),
                ("client_id", &oauth.client_id),
                ("code_verifier", &proof.verifier),
            ];
            let given = client.tokens(&oauth.token_url, &form).await;
            given.map_err(|error| error.to_string())
        }),
    })
}

fn needed<'a>(url: Option<&'a str>, key: &str) -> Result<&'a str, String> {
    url.ok_or_else(|| format!("`{key}` is not set under `oauth`; set it, or sign in another way"))
}

/// The code that a browser is sent back with, or why there is none.
async fn sent_back(listener: &TcpListener, state: &str) -> Result<String, String> {
    let mut visits = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if visits.len() < CONNECTIONS_MAX => {
                let (stream, _) = accepted.map_err(|error| error.to_string())?;
                visits.spawn(visit(stream, state.to_owned()));
            }
            Some(visit) = visits.join_next() => {
                if let Ok(Some(ended)) = visit {
                    return ended;
                }
            }
        }
    }
}

/// What one connection brings; nothing from who does not know the state.
async fn visit(mut stream: TcpStream, state: String) -> Option<Result<String, String>> {
    let query = timeout(REQUEST_TIMEOUT, asked(&mut stream)).await.ok()??;
    let said = oauth::parse_query(&query);
    let value = |name: &str| {
        let found = said.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone())
    };
    if value("state").as_deref() != Some(&*state) {
        let text = "This is not the page that you were sent to.";
        show(&mut stream, "400 Bad Request", text).await;
        return None;
    }
    let (ended, text) = match (value("code"), value("error")) {
        (Some(code), None) => (Ok(code), "You are signed in. You can close this page."),
        (_, error) => (
            Err(format!("the provider said: {}", error.unwrap_or_default())),
            "You are not signed in. You can close this page.",
        ),
    };
    show(&mut stream, "200 OK", text).await;
    Some(ended)
}

/// The query that a browser comes with; nothing if it wants something else.
async fn asked(stream: &mut TcpStream) -> Option<String> {
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
    // Whether a browser reads it changes nothing.
    let _ = timeout(REQUEST_TIMEOUT, stream.write_all(page.as_bytes())).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_on_which_nothing_is_said_delays_nobody() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let here = listener.local_addr().expect("an address");
        let _silent = TcpStream::connect(here).await.expect("a connection");
        let mut browser = TcpStream::connect(here).await.expect("a connection");
        let request = b"GET /callback?code=c&state=s HTTP/1.1\r\n\r\n";
        browser.write_all(request).await.expect("sent");
        let code = timeout(REQUEST_TIMEOUT / 2, sent_back(&listener, "s")).await;
        assert_eq!(code, Ok(Ok("c".to_owned())));
    }

    #[test]
    fn a_code_is_waited_for_as_long_as_it_is_good_but_not_for_ever() {
        for (said, wanted) in [(60, 60), (900, 900), (901, 900), (u64::MAX, 900)] {
            assert_eq!(good_for(said), Duration::from_secs(wanted));
        }
    }
}
