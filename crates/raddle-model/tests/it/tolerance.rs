use std::sync::Arc;

use raddle_model::{
    CallError, Dial, DialFuture, Endpoint, Io, ItemKind, ModelClient, StreamEvent, Tokens,
    WireFormat,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{LIMITS, asking};

/// A vendor that answers everything with the same bytes, in pieces, and hangs up.
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

/// Whether the body that the head announces is there.
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

async fn heard(answer: &str, piece: usize) -> Result<Vec<StreamEvent>, CallError> {
    let answer = answer.as_bytes().to_vec();
    let client = ModelClient::with_dial(Arc::new(RawVendor { answer, piece }));
    let endpoint = "http://vendor/v1".parse().expect("an address");
    let mut stream = client.responses(&endpoint, &asking("hi"), LIMITS).await?;
    let mut events = Vec::new();
    while let Some(event) = stream.next().await? {
        match (events.last_mut(), event) {
            // How text is cut depends on how it comes.
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
    let wanted = vec![
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
            let found = heard(&answer, piece).await;
            assert_eq!(found.as_ref(), Ok(&wanted), "{end:?} in pieces of {piece}");
        }
    }
}

#[tokio::test]
async fn answers_that_are_none_are_told_apart() {
    let plain = "HTTP/1.1 200 OK\r\n\r\n";
    let done = "data: {\"type\":\"response.completed\"}\n\n";
    for (answer, wanted) in [
        (format!("{plain}{done}"), "ok"),
        (HEAD.to_owned(), "broke off: it was empty"),
        (format!("{HEAD}data: {{\"type\":\"response.created\"}}\n\n"), "it ended in the middle"),
        (format!("{HEAD}data: [DONE]\n\n"), "it ended in the middle"),
        (format!("{HEAD}data: {{\"choices\":[]}}\n\n{done}"), "an event has no type"),
        (format!("{HEAD}data: <html>\n\n{done}"), "cannot be read"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"hello\":1}".to_owned(),
            "it is `application/json` and no stream of events; is base_url right? It begins: {\"hello\":1}",
        ),
        (
            "HTTP/1.1 404 Not Found\r\ncontent-length: 900\r\n\r\n{\"error\":{\"message\":\"no such model\"}}".to_owned(),
            "the model's vendor answered 404: no such model",
        ),
        ("nonsense\r\n\r\n".to_owned(), "cannot reach the model"),
        (String::new(), "cannot reach the model"),
    ] {
        let found = match heard(&answer, 1000).await {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(wanted), "{answer:?}: {found}");
    }
}

/// Some vendors repeat the key that they do not know, at once or in the middle of an answer.
#[tokio::test]
async fn what_only_the_vendor_should_know_is_not_repeated() {
    let keys = [
        "sk-first-key",
        "team-secret-2",
        "query-secret-3",
        "base-secret-4",
    ];
    let told = format!("no: {}", keys.join(" "));
    let body = format!("{{\"error\":{{\"message\":\"{told}\"}}}}");
    let length = body.len();
    let failed = format!("data: {{\"type\":\"error\",\"message\":\"{told}\"}}\n\n");
    for answer in [
        format!("HTTP/1.1 401 No\r\ncontent-length: {length}\r\n\r\n{body}"),
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n{told}"),
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
        let error = match client.responses(&endpoint, &asking("hi"), LIMITS).await {
            Ok(mut stream) => stream.next().await.expect_err("a failure"),
            Err(error) => error,
        };
        let error = error.to_string();
        assert!(error.contains("no: … … … …"), "{error}");
    }
}

/// So do those who give tokens, with what they do not take: as it is, or as the form has it.
#[tokio::test]
async fn what_was_to_be_exchanged_for_tokens_is_not_repeated() {
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

/// However they write it: as it was sent, as an address or a form has it, or as JSON may.
#[tokio::test]
async fn no_spelling_of_a_key_is_repeated() {
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
        let told = format!("no: {spelled}");
        let refused = |body: &str| {
            let length = body.len();
            format!("HTTP/1.1 401 No\r\ncontent-length: {length}\r\n\r\n{body}")
        };
        let list = format!("{{\"data\":\"{told}\"}}");
        let length = list.len();
        for answer in [
            refused(&format!("{{\"error\":{{\"message\":\"{told}\"}}}}")),
            refused(&format!("{{\"told\":[\"{told}\"]}}")),
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{{\"a\":\"{told}\"}}"
            ),
            format!("{HEAD}data: {{\"type\":\"error\",\"message\":\"{told}\"}}\n\n"),
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
                false => match client.responses(&endpoint, &asking("hi"), LIMITS).await {
                    Ok(mut stream) => stream.next().await.expect_err("a failure"),
                    Err(error) => error,
                },
            };
            let error = error.to_string();
            assert!(error.contains("no: …"), "{key} as {spelled}: {error}");
        }
    }
}
