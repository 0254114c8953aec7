use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::*;

/// A server that takes one request and says this; nothing closes without a word, and `-` says nothing for as long as
/// it is waited for.
fn server(says: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address");
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut heard = Vec::new();
        let mut byte = [0];
        while !is_whole(&heard) && stream.read(&mut byte).is_ok_and(|it| it == 1) {
            heard.push(byte[0]);
        }
        if says == "-" {
            // Until whoever waits has had enough.
            let _ = stream.read(&mut byte);
        } else {
            let _ = stream.write_all(says.as_bytes());
        }
        String::from_utf8_lossy(&heard).into_owned()
    });
    (format!("http://{address}/hook?a=b"), serving)
}

/// Whether the body that the head announces is there.
fn is_whole(heard: &[u8]) -> bool {
    let heard = String::from_utf8_lossy(heard).to_lowercase();
    let Some((head, body)) = heard.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "));
    length
        .and_then(|it| it.parse().ok())
        .is_some_and(|length: usize| body.len() >= length)
}

async fn asked(
    url: String,
    token_env: Option<&str>,
    question: Value,
) -> Result<WebhookDecision, String> {
    let put = WebhookRequest {
        url,
        token_env: token_env.map(str::to_owned),
        question,
        within: Duration::from_millis(300),
    };
    HttpWebhook::default().send(put).await
}

#[tokio::test]
async fn only_a_decision_is_one() {
    let long = concat!(
        "HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n",
        "{\"decision\": \"acc"
    );
    for (says, wanted) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\n{\"decision\": \"accept\"}",
            Ok(WebhookDecision::Accept),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 39\r\n\r\n{\"decision\": \"decline\", \"reason\": \"no\"}",
            Ok(WebhookDecision::Decline),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\n{\"decision\": \"maybe\"}",
            Err("cannot be read"),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue",
            Err("cannot be read"),
        ),
        (
            "HTTP/1.1 500 Oh\r\ncontent-length: 22\r\n\r\n{\"decision\": \"accept\"}",
            Err("500"),
        ),
        (
            "HTTP/1.1 302 Oh\r\nlocation: /\r\ncontent-length: 22\r\n\r\n{\"decision\": \"accept\"}",
            Err("302"),
        ),
        (long, Err("")),
        ("", Err("")),
        ("-", Err("")),
    ] {
        let (url, serving) = server(says);
        let found = asked(url, None, json!({"a": 1})).await;
        match (found, wanted) {
            (Ok(found), Ok(wanted)) => assert_eq!(found, wanted, "{says}"),
            (Err(found), Err(wanted)) => assert!(found.contains(wanted), "{says}: {found}"),
            (found, wanted) => panic!("{says}: {found:?}, not {wanted:?}"),
        }
        let heard = serving.join().expect("a server");
        assert!(heard.starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{heard}");
        assert!(heard.ends_with("\r\n\r\n{\"a\":1}"), "{heard}");
        assert!(heard.contains("accept: application/json"), "{heard}");
        assert!(!heard.contains("authorization"), "{heard}");
    }
}

/// The variable is one that every process has.
#[tokio::test]
async fn a_token_is_said_or_nothing_is() {
    let accepts = "HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\n{\"decision\": \"accept\"}";
    let (url, serving) = server(accepts);
    let found = asked(url.clone(), Some("RADDLE_NO_SUCH_TOKEN"), json!({})).await;
    assert!(found.is_err_and(|it| it.contains("RADDLE_NO_SUCH_TOKEN, which is not set")));
    assert_eq!(
        asked(url, Some("PATH"), json!({})).await,
        Ok(WebhookDecision::Accept)
    );
    let path = std::env::var("PATH").expect("a path");
    let heard = serving.join().expect("a server");
    assert!(
        heard.contains(&format!("authorization: Bearer {path}\r\n")),
        "{heard}"
    );
}

#[test]
fn the_log_is_not_told_the_path() {
    for (why, url, wanted) in [
        (
            "https://a.example/hook/s3cret does not answer",
            "https://a.example/hook/s3cret?x=1",
            "https://a.example does not answer",
        ),
        (
            "cannot reach https://a.example:443/hook/s3cret: no",
            "https://a.example/hook/s3cret",
            "cannot reach https://a.example:443: no",
        ),
        (
            "cannot reach https://a.example:443/hook/s3cret: no",
            "https://a.example/hook/s3cret/#x",
            "cannot reach https://a.example:443: no",
        ),
        ("no / no", "http://127.0.0.1:1", "no / no"),
        ("no / no", "http://127.0.0.1:1/?a=b", "no / no"),
    ] {
        assert_eq!(without_path(why, url), wanted);
    }
}

/// Nobody is there, someone repeats it, or it cannot be asked: none of it is a reason to tell it.
#[tokio::test]
async fn no_error_has_the_path() {
    let repeats = "HTTP/1.1 404 No\r\ncontent-length: 26\r\n\r\nno hook s3cret-of-the-path";
    let (url, serving) = server(repeats);
    let host = url.split_once("/hook").expect("a path").0.to_owned();
    for address in [
        format!("{host}/s3cret-of-the-path/"),
        "http://127.0.0.1:1/s3cret-of-the-path".to_owned(),
        "ftp://127.0.0.1/s3cret-of-the-path".to_owned(),
    ] {
        let error = asked(address.clone(), None, json!({})).await;
        let error = error.expect_err("no decision");
        assert!(!error.contains("s3cret"), "{address}: {error}");
    }
    serving.join().expect("a server");
}
