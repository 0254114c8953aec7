use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::*;

/// A server that accepts one request and sends this response. An empty response closes the
/// connection; `-` keeps it open and sends nothing.
fn server(response: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("an address");
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut request = Vec::new();
        let mut byte = [0];
        while !is_whole(&request) && stream.read(&mut byte).is_ok_and(|it| it == 1) {
            request.push(byte[0]);
        }
        if response == "-" {
            // Until the client times out.
            let _ = stream.read(&mut byte);
        } else {
            let _ = stream.write_all(response.as_bytes());
        }
        String::from_utf8_lossy(&request).into_owned()
    });
    (format!("http://{address}/hook?a=b"), serving)
}

/// Whether the body has the length that the head announces.
fn is_whole(request: &[u8]) -> bool {
    let request = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "));
    length
        .and_then(|it| it.parse().ok())
        .is_some_and(|length: usize| body.len() >= length)
}

async fn send(
    url: String,
    token_env: Option<&str>,
    question: Value,
) -> Result<WebhookDecision, String> {
    let webhook_request = WebhookRequest {
        url,
        token_env: token_env.map(str::to_owned),
        question,
        timeout: Duration::from_millis(300),
    };
    let decision = HttpWebhook::default().send(webhook_request).await;
    decision.map_err(|WebhookError(why)| why)
}

#[tokio::test]
async fn only_a_valid_decision_is_accepted() {
    let long = concat!(
        "HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n",
        "{\"decision\": \"acc"
    );
    for (response, expected) in [
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
        let (url, serving) = server(response);
        let actual = send(url, None, json!({"a": 1})).await;
        match (actual, expected) {
            (Ok(actual), Ok(expected)) => assert_eq!(actual, expected, "{response}"),
            (Err(actual), Err(expected)) => {
                assert!(actual.contains(expected), "{response}: {actual}")
            }
            (actual, expected) => panic!("{response}: {actual:?}, not {expected:?}"),
        }
        let request = serving.join().expect("a server");
        assert!(
            request.starts_with("POST /hook?a=b HTTP/1.1\r\n"),
            "{request}"
        );
        assert!(request.ends_with("\r\n\r\n{\"a\":1}"), "{request}");
        assert!(request.contains("accept: application/json"), "{request}");
        assert!(!request.contains("authorization"), "{request}");
    }
}

/// Uses a variable that every process has.
#[tokio::test]
async fn a_missing_token_sends_no_request() {
    let accepts = "HTTP/1.1 200 OK\r\ncontent-length: 22\r\n\r\n{\"decision\": \"accept\"}";
    let (url, serving) = server(accepts);
    let result = send(url.clone(), Some("RADDLE_NO_SUCH_TOKEN"), json!({})).await;
    assert!(result.is_err_and(|it| it.contains("RADDLE_NO_SUCH_TOKEN, which is not set")));
    assert_eq!(
        send(url, Some("PATH"), json!({})).await,
        Ok(WebhookDecision::Accept)
    );
    let path = std::env::var("PATH").expect("a path");
    let request = serving.join().expect("a server");
    assert!(
        request.contains(&format!("authorization: Bearer {path}\r\n")),
        "{request}"
    );
}

#[test]
fn the_path_is_redacted_from_the_log() {
    for (why, url, expected) in [
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
        assert_eq!(without_path(why, url), WebhookError(expected.to_owned()));
    }
}

/// The path is redacted from every error: no connection, an echo in the response, or an invalid
/// scheme.
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
        let error = send(address.clone(), None, json!({})).await;
        let error = error.expect_err("no decision");
        assert!(!error.contains("s3cret"), "{address}: {error}");
    }
    serving.join().expect("a server");
}
