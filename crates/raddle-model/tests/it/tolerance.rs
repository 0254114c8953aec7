use std::sync::Arc;

use raddle_model::{
    CallError, Dial, DialFuture, Endpoint, Io, ItemKind, ModelClient, StreamEvent, Tokens,
    WireFormat,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{LIMITS, user_request};

/// A vendor that answers every request with the same bytes, in pieces, and closes the connection.
#[derive(Debug)]
struct RawVendor {
    answer: Vec<u8>,
    piece: usize,
}

impl Dial for RawVendor {
    fn dial<'a>(&'a self, _: &'a str, _: u16) -> DialFuture<'a> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let (answer, piece) = (self.answer.clone(), self.piece);
        tokio::spawn(async move {
            let mut request = Vec::new();
            while !is_whole(&request) {
                if theirs.read_buf(&mut request).await.is_ok_and(|it| it == 0) {
                    return;
                }
            }
            for piece in answer.chunks(piece) {
                if theirs.write_all(piece).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
        Box::pin(async move { Ok(Box::new(ours) as Box<dyn Io>) })
    }
}

/// Whether the announced body has arrived completely.
fn is_whole(request: &[u8]) -> bool {
    let request = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "));
    length.is_none_or(|it| it.parse().is_ok_and(|it: usize| body.len() >= it))
}

async fn receive(answer: &str, piece: usize) -> Result<Vec<StreamEvent>, CallError> {
    let answer = answer.as_bytes().to_vec();
    let client = ModelClient::with_dial(Arc::new(RawVendor { answer, piece }));
    let endpoint = "http://vendor/v1".parse().expect("an address");
    let mut stream = client
        .responses(&endpoint, &user_request("hi"), LIMITS)
        .await?;
    let mut events = Vec::new();
    while let Some(event) = stream.next().await? {
        match (events.last_mut(), event) {
            // The pieces of text depend on how the bytes arrive.
            (Some(StreamEvent::Text { text, .. }), StreamEvent::Text { text: more, .. }) => {
                text.push_str(&more);
            }
            (_, event) => events.push(event),
        }
    }
    Ok(events)
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";

#[tokio::test]
async fn events_are_read_however_they_are_written_and_cut() {
    let events = [
        ": hello",
        "event: response.created\ndata: {\"type\":\"response.created\"}",
        "data: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\",\"id\":\"m\"}}",
        "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"delta\":\"grüß \"}",
        "data: {\"type\":\"response.output_text.delta\",\ndata:  \"item_id\":\"m\",\"delta\":\"dich 😀\"}",
        "data: {\"type\":\"response.web_search_call.searching\",\"item_id\":\"w\"}",
        "id: 7\nretry: 10\ndata:{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"id\":\"m\",\"content\":[{\"text\":\"grüß dich 😀\"}]}}",
        "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3}}}",
        "data: [DONE]",
    ];
    let expected = vec![
        StreamEvent::Started {
            id: "m".into(),
            kind: ItemKind::Message,
        },
        StreamEvent::Text {
            id: "m".into(),
            text: "grüß dich 😀".into(),
        },
        StreamEvent::Message {
            id: "m".into(),
            text: "grüß dich 😀".into(),
            phase: None,
            sealed: None,
        },
        StreamEvent::Completed(Some(Tokens {
            input: 3,
            ..Tokens::default()
        })),
    ];
    for end in ["\n", "\r\n"] {
        let body: String = events.iter().map(|it| format!("{it}\n\n")).collect();
        let answer = format!("{HEAD}{}", body.replace('\n', end));
        for piece in [1, 2, 3, 7, 100, 100_000] {
            let events_read = receive(&answer, piece).await;
            assert_eq!(
                events_read.as_ref(),
                Ok(&expected),
                "{end:?} in pieces of {piece}"
            );
        }
    }
}

#[tokio::test]
async fn invalid_answers_give_distinct_errors() {
    let plain = "HTTP/1.1 200 OK\r\n\r\n";
    let done = "data: {\"type\":\"response.completed\"}\n\n";
    for (answer, expected) in [
        (format!("{plain}{done}"), "ok"),
        (HEAD.to_owned(), "broke off: it was empty"),
        (format!("{HEAD}data: {{\"type\":\"response.created\"}}\n\n"), "it ended in the middle"),
        (format!("{HEAD}data: [DONE]\n\n"), "it ended in the middle"),
        (format!("{HEAD}data: {{\"choices\":[]}}\n\n{done}"), "an event has no type"),
        (format!("{HEAD}data: <html>\n\n{done}"), "cannot be read"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"hello\":1}".to_owned(),
            "it is `application/json` and not a stream of events; is base_url right? It begins: {\"hello\":1}",
        ),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 900\r\n\r\n{\"error\":{\"message\":\"no such model\"}}".to_owned(),
            "the model's vendor answered 404: no such model",
        ),
        ("nonsense\r\n\r\n".to_owned(), "cannot reach the model"),
        (String::new(), "cannot reach the model"),
    ] {
        let outcome = match receive(&answer, 1000).await {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(outcome.contains(expected), "{answer:?}: {outcome}");
    }
}

/// Some vendors repeat an unknown key, at once or in the middle of an answer.
#[tokio::test]
async fn secrets_of_the_vendor_are_redacted_from_errors() {
    let keys = [
        "sk-first-key",
        "team-secret-2",
        "query-secret-3",
        "base-secret-4",
    ];
    let message = format!("no: {}", keys.join(" "));
    let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}");
    let length = body.len();
    let failed = format!("data: {{\"type\":\"error\",\"message\":\"{message}\"}}\n\n");
    for answer in [
        format!("HTTP/1.1 401 No\r\ncontent-length: {length}\r\n\r\n{body}"),
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n{message}"),
        format!("{HEAD}{failed}"),
    ] {
        let answer = answer.into_bytes();
        let client = ModelClient::with_dial(Arc::new(RawVendor { answer, piece: 64 }));
        let endpoint: Endpoint = format!("http://vendor/v1?key={}", keys[3])
            .parse()
            .expect("an address");
        let endpoint = endpoint
            .with_key(keys[0])
            .and_then(|it| it.with_header("x-team", keys[1]))
            .expect("headers")
            .with_query("key", keys[2]);
        let error = match client
            .responses(&endpoint, &user_request("hi"), LIMITS)
            .await
        {
            Ok(mut stream) => stream.next().await.expect_err("a failure"),
            Err(error) => error,
        };
        let error = error.to_string();
        assert!(error.contains("no: … … … …"), "{error}");
    }
}

/// Token endpoints repeat rejected values too: raw, or form-encoded.
#[tokio::test]
async fn exchanged_credentials_are_redacted_from_errors() {
    for (name, value, repeated) in [
        ("refresh_token", "refresh+secret/1=", "refresh+secret/1="),
        (
            "refresh_token",
            "refresh+secret/1=",
            "refresh%2Bsecret%2F1%3D",
        ),
        ("code", "code-secret-2", "code-secret-2"),
        ("code_verifier", "verifier-secret-3", "verifier-secret-3"),
        ("device_code", "device-secret-4", "device-secret-4"),
    ] {
        let body = format!("{{\"error\":\"no {name}: {repeated}\"}}");
        let length = body.len();
        let answer = format!("HTTP/1.1 400 No\r\ncontent-length: {length}\r\n\r\n{body}");
        let answer = answer.into_bytes();
        let client = ModelClient::with_dial(Arc::new(RawVendor { answer, piece: 64 }));
        let form = [("grant_type", "refresh_token"), (name, value)];
        let error = client.tokens("http://vendor/token", &form).await;
        let error = error.expect_err("a refusal").to_string();
        assert!(error.ends_with(&format!("no {name}: …")), "{error}");
    }
}

/// In every spelling: as it was sent, URL-encoded or form-encoded, or escaped as in JSON.
#[tokio::test]
async fn every_spelling_of_a_key_is_redacted() {
    for (key, spelled) in [
        ("sk+first/key=", "sk+first/key="),
        ("sk+first/key=", "sk%2Bfirst%2Fkey%3D"),
        ("sk+first/key=", "sk%2bfirst%2fkey%3d"),
        ("sk+first/key=", "sk\\u002Bfirst\\/key\\u003d"),
        ("sk%2Bfirst%2Fkey", "sk+first/key"),
        ("sk%2Bfirst%2Fkey", "sk+first\\/key"),
        ("sk+first+key", "sk first key"),
        ("sk\"first\"key", "sk\\\"first\\\"key"),
    ] {
        let message = format!("no: {spelled}");
        let refusal = |body: &str| {
            let length = body.len();
            format!("HTTP/1.1 401 No\r\ncontent-length: {length}\r\n\r\n{body}")
        };
        let list = format!("{{\"data\":\"{message}\"}}");
        let length = list.len();
        for answer in [
            refusal(&format!("{{\"error\":{{\"message\":\"{message}\"}}}}")),
            refusal(&format!("{{\"told\":[\"{message}\"]}}")),
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{{\"a\":\"{message}\"}}"
            ),
            format!("{HEAD}data: {{\"type\":\"error\",\"message\":\"{message}\"}}\n\n"),
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{list}"),
        ] {
            let is_list = answer.ends_with(&list);
            let answer = answer.into_bytes();
            let client = ModelClient::with_dial(Arc::new(RawVendor { answer, piece: 64 }));
            let endpoint: Endpoint = "http://vendor/v1".parse().expect("an address");
            let endpoint = endpoint.with_query("key", key);
            let error = match is_list {
                true => {
                    let listed = client.models(WireFormat::Responses, &endpoint, LIMITS);
                    listed.await.expect_err("no list")
                }
                false => match client
                    .responses(&endpoint, &user_request("hi"), LIMITS)
                    .await
                {
                    Ok(mut stream) => stream.next().await.expect_err("a failure"),
                    Err(error) => error,
                },
            };
            let error = error.to_string();
            assert!(error.contains("no: …"), "{key} as {spelled}: {error}");
        }
    }
}
