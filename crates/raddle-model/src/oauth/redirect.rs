//! The redirect of a browser to a port of this machine, at the end of a sign-in.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::parse_query;

/// The timeout for the user in a browser.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(600);

/// The timeout and the maximum size of the browser's redirect request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// The maximum number of concurrent connections: browsers open some without sending anything.
const CONNECTIONS_MAX: usize = 16;

/// Listens on this machine for the redirect of a browser.
#[derive(Debug)]
pub struct RedirectListener {
    listener: TcpListener,
    uri: String,
    /// Path of the address, with the beginning of its query.
    target: String,
}

/// The answer in a redirect.
#[derive(Clone, PartialEq, Eq)]
pub struct RedirectAnswer {
    /// The code for tokens, a secret.
    pub code: String,
    /// The issuer that sent it, if it names itself (RFC 9207).
    pub issuer: Option<String>,
}

/// Reason why a redirect brought no code.
#[derive(Debug, thiserror::Error)]
pub enum RedirectError {
    /// The port failed.
    #[error(transparent)]
    Accept(#[from] io::Error),
    /// The user did not finish in time.
    #[error("the sign-in timed out")]
    TimedOut,
    /// The authorization server reported an error.
    #[error("the provider reported: {0}")]
    Rejected(String),
}

impl RedirectListener {
    /// Listens on a port; 0 stands for any free one.
    pub async fn bind(port: u16) -> io::Result<Self> {
        Self::bind_address("127.0.0.1", port, "/callback").await
    }

    /// Listens on a port for redirects to this path. `host` is a name of this machine.
    pub async fn bind_address(host: &str, port: u16, path: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self {
            listener,
            uri: format!("http://{host}:{port}{path}"),
            target: format!("{path}?"),
        })
    }

    /// Returns the address that the browser is redirected to.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Waits for the redirect with this state, and returns its answer.
    pub async fn answer(&self, state: &str) -> Result<RedirectAnswer, RedirectError> {
        let answer = timeout(BROWSER_TIMEOUT, self.accept(state)).await;
        answer.unwrap_or(Err(RedirectError::TimedOut))
    }

    async fn accept(&self, state: &str) -> Result<RedirectAnswer, RedirectError> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    let (stream, _) = accepted?;
                    let (target, state) = (self.target.clone(), state.to_owned());
                    connections.spawn(handle_connection(stream, target, state));
                }
                Some(done) = connections.join_next() => {
                    if let Ok(Some(ended)) = done {
                        return ended;
                    }
                }
            }
        }
    }
}

/// Handles one connection. Returns `None` if its `state` is wrong.
async fn handle_connection(
    mut stream: TcpStream,
    target: String,
    state: String,
) -> Option<Result<RedirectAnswer, RedirectError>> {
    let query = timeout(REQUEST_TIMEOUT, read_query(&mut stream, &target))
        .await
        .ok()??;
    let pairs = parse_query(&query);
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
        (Some(code), None) => {
            let issuer = value("iss");
            let answer = RedirectAnswer { code, issuer };
            (Ok(answer), "You are signed in. You can close this page.")
        }
        (_, error) => (
            Err(RedirectError::Rejected(error.unwrap_or_default())),
            "You are not signed in. You can close this page.",
        ),
    };
    show(&mut stream, "200 OK", text).await;
    Some(ended)
}

/// Reads the query of the redirect request; `None` for any other request.
async fn read_query(stream: &mut TcpStream, target: &str) -> Option<String> {
    let mut read = Vec::new();
    while !read.windows(4).any(|it| it == b"\r\n\r\n") {
        if read.len() > REQUEST_BYTES_MAX || stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    let line = read.split(|it| *it == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let requested = line.strip_prefix("GET ")?.split(' ').next()?;
    let query = requested.strip_prefix(target)?;
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
        let listener = RedirectListener::bind(0).await.expect("a port");
        let here = listener.listener.local_addr().expect("an address");
        let _silent = TcpStream::connect(here).await.expect("a connection");
        let mut browser = TcpStream::connect(here).await.expect("a connection");
        let request = b"GET /callback?code=c&state=s&iss=https%3A%2F%2Fa HTTP/1.1\r\n\r\n";
        browser.write_all(request).await.expect("sent");
        let answer = timeout(REQUEST_TIMEOUT / 2, listener.answer("s")).await;
        let answer = answer.expect("in time").expect("a code");
        let expected = ("c", Some("https://a"));
        assert_eq!((&*answer.code, answer.issuer.as_deref()), expected);
    }
}
