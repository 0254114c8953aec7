use std::sync::Arc;

use raddle_core::{FailureKind, ModelEnd};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::model::VendorClient;
use crate::model::outcome::Attempts;

const GOOD: &str = r#"{"access_token":"new","refresh_token":"next","expires_in":3600}"#;

/// Someone signed in with a provider, and who gives tokens there: only when told to.
struct SignInFixture {
    home: TempDir,
    listener: TcpListener,
    keys: Keys,
    provider: Arc<Provider>,
    oauth: OAuth,
}

impl SignInFixture {
    /// With a token that is good for so many seconds.
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
        let given = oauth::OauthTokens {
            access: "old".to_owned(),
            refresh: Some("first".to_owned()),
            expires_in: Some(seconds),
        };
        let kept = keys
            .store_credential(&provider, Some(tokens(given, None, &oauth)))
            .await;
        kept.expect("kept");
        Self {
            home,
            listener,
            keys,
            provider: Arc::new(provider),
            oauth,
        }
    }

    /// Wants another token than the first.
    fn renewing(&self) -> JoinHandle<Result<String, CallFailure>> {
        let (keys, provider) = (self.keys.clone(), self.provider.clone());
        let oauth = self.oauth.clone();
        tokio::spawn(async move { keys.renewed(&provider, &oauth, "old").await })
    }

    /// Waits until a token is wanted.
    async fn asked(&self) -> TcpStream {
        let (mut stream, _) = self.listener.accept().await.expect("a client");
        let mut heard = Vec::new();
        while !String::from_utf8_lossy(&heard).ends_with("client_id=raddle") {
            let read = stream.read_buf(&mut heard).await.expect("a request");
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
async fn what_is_given_is_kept_though_nobody_waits_for_it_any_more() {
    let signed_in = SignInFixture::new(3600).await;
    let waiting = signed_in.renewing();
    let asked = signed_in.asked().await;
    waiting.abort();
    assert!(waiting.await.is_err_and(|it| it.is_cancelled()));
    let next = signed_in.renewing();
    answer(asked, "200 OK", GOOD).await;
    let next = next.await.expect("an end");
    assert_eq!(next.expect("a token"), "new");
}

#[tokio::test]
async fn a_process_that_renews_for_ever_is_not_waited_for() {
    let signed_in = SignInFixture::new(3600).await;
    let other = VendorClient::new(signed_in.home.path(), None).keys;
    let held = other.alone(Duration::ZERO).await.expect("a lock");
    let error = signed_in.keys.alone(Duration::ZERO).await;
    let error = error.expect_err("another has it");
    assert!(
        error.starts_with("another process has been renewing"),
        "{error}"
    );
    drop(held);
    let free = signed_in.keys.alone(Duration::ZERO).await;
    assert!(free.is_ok(), "{free:?}");
}

/// The kind of error that a call ends with, and whether it is made again.
fn ended(failed: &CallFailure) -> (FailureKind, bool) {
    match Attempts::of(1).ended(failed) {
        ModelEnd::Broke { error, .. } => (error.kind, true),
        ModelEnd::Failed { error } => (error.kind, false),
        other => panic!("{other:?}"),
    }
}

/// What is given in place of a token that is good for so many seconds: the key that is used, or what the turn ends
/// with and whether it is tried again.
#[tokio::test]
async fn a_token_that_cannot_be_renewed_is_used_while_it_is_good() {
    let old = || Ok("old".to_owned());
    let gone = |kind, again| Err((kind, again));
    for (seconds, status, body, wanted) in [
        (30, "200 OK", GOOD, Ok("new".to_owned())),
        (30, "503 No", "{}", old()),
        (30, "400 No", r#"{"error":"invalid_grant"}"#, old()),
        (0, "200 OK", GOOD, Ok("new".to_owned())),
        (0, "503 No", "{}", gone(FailureKind::Overloaded, true)),
        (
            0,
            "400 No",
            r#"{"error":"invalid_grant"}"#,
            gone(FailureKind::Unauthorized, false),
        ),
        (
            0,
            "200 OK",
            "<html>",
            gone(FailureKind::Unauthorized, false),
        ),
    ] {
        let signed_in = SignInFixture::new(seconds).await;
        let (keys, provider) = (signed_in.keys.clone(), signed_in.provider.clone());
        let key = tokio::spawn(async move { keys.key(&provider).await });
        answer(signed_in.asked().await, status, body).await;
        let found = match key.await.expect("an end") {
            Ok(key) => Ok(key.expect("a key").text().to_owned()),
            Err(failed) => Err(ended(&failed)),
        };
        assert_eq!(found, wanted, "{seconds} s, {status}");
    }
}

#[tokio::test]
async fn who_signs_out_or_in_meanwhile_is_not_overruled() {
    let key = || StoredCredential::Key {
        key: "another".to_owned(),
    };
    for (meanwhile, wanted) in [(None, None), (Some(key()), Some("another"))] {
        let signed_in = SignInFixture::new(3600).await;
        let waiting = signed_in.renewing();
        let asked = signed_in.asked().await;
        let (keys, provider) = (&signed_in.keys, &signed_in.provider);
        keys.store_credential(provider, meanwhile.clone())
            .await
            .expect("kept");
        answer(asked, "200 OK", GOOD).await;
        let found = waiting.await.expect("an end").ok();
        assert_eq!(found.as_deref(), wanted);
        assert_eq!(keys.stored_credential(provider).await, Ok(meanwhile));
    }
}

/// A key file may lie where a model can put something else in its place.
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
    for (name, wanted) in [
        ("device", Err("no ordinary file")),
        ("pipe", Err("no ordinary file")),
        ("long", Err("too long for a key")),
        ("key", Ok("secret")),
    ] {
        let found = keys.of_file(&at(name)).await;
        let found = found.as_ref().map(ApiKey::text).map_err(String::as_str);
        match (found, wanted) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted),
            (Err(why), Err(wanted)) => assert!(why.contains(wanted), "{name}: {why}"),
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}
