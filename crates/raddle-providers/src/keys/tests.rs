use std::sync::Arc;

use raddle_core::{FailureKind, ModelEnd};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::VendorClient;
use crate::outcome::Attempts;

const GOOD: &str = r#"{"access_token":"new","refresh_token":"next","expires_in":3600}"#;

/// A signed-in user, and a token endpoint that responds only on demand.
struct SignInFixture {
    home: TempDir,
    listener: TcpListener,
    keys: Keys,
    provider: Arc<Provider>,
    oauth: OAuth,
}

impl SignInFixture {
    /// Stores a token that expires in so many seconds.
    async fn new(seconds: u64) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let oauth = OAuth {
            client_id: "raddle".to_owned(),
            token_url: format!("http://{address}/token"),
            ..OAuth::default()
        };
        let provider = Provider {
            name: "a".to_owned(),
            base_url: "http://a".to_owned(),
            key: KeySource::Stored(SignIn {
                oauth: Some(oauth.clone()),
                ..SignIn::default()
            }),
            ..Provider::default()
        };
        let keys = VendorClient::new(home.path(), None).keys;
        let tokens_issued = oauth::OauthTokens {
            access: "old".to_owned(),
            refresh: Some("first".to_owned()),
            expires_in: Some(seconds),
        };
        let stored = keys
            .store_credential(&provider, Some(tokens(tokens_issued, None, &oauth)))
            .await;
        stored.expect("kept");
        Self {
            home,
            listener,
            keys,
            provider: Arc::new(provider),
            oauth,
        }
    }

    /// Requests a replacement for the first token.
    fn renewing(&self) -> JoinHandle<Result<String, CallFailure>> {
        let (keys, provider) = (self.keys.clone(), self.provider.clone());
        let oauth = self.oauth.clone();
        tokio::spawn(async move { keys.renewed(&provider, &oauth, "old").await })
    }

    /// Waits for a token request.
    async fn accept_request(&self) -> TcpStream {
        let (mut stream, _) = self.listener.accept().await.expect("a client");
        let mut request = Vec::new();
        while !String::from_utf8_lossy(&request).ends_with("client_id=raddle") {
            let read = stream.read_buf(&mut request).await.expect("a request");
            assert_ne!(read, 0, "the request ended");
        }
        stream
    }
}

async fn answer(mut stream: TcpStream, status: &str, body: &str) {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
    let written = stream.write_all(answer.as_bytes()).await;
    written.expect("an answer");
}

#[tokio::test]
async fn a_renewed_token_is_stored_after_its_caller_is_cancelled() {
    let signed_in = SignInFixture::new(3600).await;
    let waiting = signed_in.renewing();
    let request = signed_in.accept_request().await;
    waiting.abort();
    assert!(waiting.await.is_err_and(|it| it.is_cancelled()));
    let next = signed_in.renewing();
    answer(request, "200 OK", GOOD).await;
    let next = next.await.expect("an end");
    assert_eq!(next.expect("a token"), "new");
}

#[tokio::test]
async fn a_process_that_renews_for_ever_is_not_waited_for() {
    let signed_in = SignInFixture::new(3600).await;
    let other = VendorClient::new(signed_in.home.path(), None).keys;
    let lock = other.renewal_lock(Duration::ZERO).await.expect("a lock");
    let error = signed_in.keys.renewal_lock(Duration::ZERO).await;
    let error = error.expect_err("another has it");
    assert!(
        error.starts_with("another process has been renewing"),
        "{error}"
    );
    drop(lock);
    let free = signed_in.keys.renewal_lock(Duration::ZERO).await;
    assert!(free.is_ok(), "{free:?}");
}

/// The kind of error that a call ends with, and whether it is retried.
fn ended(failed: &CallFailure) -> (FailureKind, bool) {
    match Attempts::of(1).ended(failed) {
        ModelEnd::Broke { error, .. } => (error.kind, true),
        ModelEnd::Failed { error } => (error.kind, false),
        other => panic!("{other:?}"),
    }
}

/// Each case: the lifetime of the token, the response to its renewal, and the key in use, or the
/// error of the turn and whether it is retried.
#[tokio::test]
async fn a_token_that_cannot_be_renewed_is_used_while_it_is_good() {
    let old = || Ok("old".to_owned());
    let failure = |kind, again| Err((kind, again));
    for (seconds, status, body, expected) in [
        (30, "200 OK", GOOD, Ok("new".to_owned())),
        (30, "503 No", "{}", old()),
        (30, "400 No", r#"{"error":"invalid_grant"}"#, old()),
        (0, "200 OK", GOOD, Ok("new".to_owned())),
        (0, "503 No", "{}", failure(FailureKind::Overloaded, true)),
        (
            0,
            "400 No",
            r#"{"error":"invalid_grant"}"#,
            failure(FailureKind::Unauthorized, false),
        ),
        (
            0,
            "200 OK",
            "<html>",
            failure(FailureKind::Unauthorized, false),
        ),
    ] {
        let signed_in = SignInFixture::new(seconds).await;
        let (keys, provider) = (signed_in.keys.clone(), signed_in.provider.clone());
        let key = tokio::spawn(async move { keys.key(&provider).await });
        answer(signed_in.accept_request().await, status, body).await;
        let actual = match key.await.expect("an end") {
            Ok(key) => Ok(key.expect("a key").text().to_owned()),
            Err(failed) => Err(ended(&failed)),
        };
        assert_eq!(actual, expected, "{seconds} s, {status}");
    }
}

#[tokio::test]
async fn a_sign_out_or_sign_in_during_renewal_takes_precedence() {
    let key = || StoredCredential::Key {
        key: "another".to_owned(),
    };
    for (meanwhile, expected) in [(None, None), (Some(key()), Some("another"))] {
        let signed_in = SignInFixture::new(3600).await;
        let waiting = signed_in.renewing();
        let request = signed_in.accept_request().await;
        let (keys, provider) = (&signed_in.keys, &signed_in.provider);
        keys.store_credential(provider, meanwhile.clone())
            .await
            .expect("kept");
        answer(request, "200 OK", GOOD).await;
        let actual = waiting.await.expect("an end").ok();
        assert_eq!(actual.as_deref(), expected);
        let stored = keys.stored_credential(provider).await;
        assert_eq!(stored.expect("a file"), meanwhile);
    }
}

/// A model may be able to replace a key file.
#[tokio::test]
async fn a_key_is_read_from_an_ordinary_file_only() {
    let home = tempfile::tempdir().expect("a home");
    let keys = VendorClient::new(home.path(), None).keys;
    let at = |name: &str| home.path().join(name);
    std::os::unix::fs::symlink("/dev/null", at("device")).expect("a link");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), mode).expect("a pipe");
    std::fs::write(at("long"), "k".repeat(KEY_BYTES_MAX + 1)).expect("a file");
    std::fs::write(at("key"), "secret\n").expect("a file");
    for (name, expected) in [
        ("device", Err("no ordinary file")),
        ("pipe", Err("no ordinary file")),
        ("long", Err("too long for a key")),
        ("key", Ok("secret")),
    ] {
        let actual = keys.of_file(&at(name)).await;
        let actual = actual.as_ref().map(ApiKey::text).map_err(String::as_str);
        match (actual, expected) {
            (Ok(actual), Ok(expected)) => assert_eq!(actual, expected),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{name}: {why}"),
            (actual, _) => panic!("{name}: {actual:?}"),
        }
    }
}
