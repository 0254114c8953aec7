use std::sync::Arc;

use raddle_model::{CallError, Client, Dial, Dialling, Event, Io, ItemKind, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{LIMITS, asking};

/// A vendor that answers everything with the same bytes, in pieces, and hangs up.
#[derive(Debug)]
struct Bytes {
    answer: Vec<u8>,
    piece: usize,
}

impl Dial for Bytes {
    fn dial<'a>(&'a self, _: &'a str, _: u16) -> Dialling<'a> {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let (answer, piece) = (self.answer.clone(), self.piece);
        tokio::spawn(async move {
            let mut request = Vec::new();
            while !request.ends_with(b"}") {
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

async fn heard(answer: &str, piece: usize) -> Result<Vec<Event>, CallError> {
    let answer = answer.as_bytes().to_vec();
    let client = Client::over(Arc::new(Bytes { answer, piece }));
    let endpoint = "http://vendor/v1".parse().expect("an address");
    let mut stream = client.responses(&endpoint, &asking("hi"), LIMITS).await?;
    let mut events = Vec::new();
    while let Some(event) = stream.next().await? {
        match (events.last_mut(), event) {
            // How text is cut depends on how it comes.
            (Some(Event::Text { text, .. }), Event::Text { text: more, .. }) => {
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
        Event::Started {
            id: "m".into(),
            kind: ItemKind::Message,
        },
        Event::Text {
            id: "m".into(),
            text: "grüß dich 😀".into(),
        },
        Event::Message {
            id: "m".into(),
            text: "grüß dich 😀".into(),
            phase: None,
        },
        Event::Completed(Some(Tokens {
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
