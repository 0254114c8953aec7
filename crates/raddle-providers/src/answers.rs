//! Error responses of vendors, from their bytes to the protocol's error.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use raddle_config::clock::now;
use raddle_core::ports::TurnEntry;
use raddle_core::{ModelEnd, Seq, Timestamp, TurnEnd, TurnId, turn_view};
use raddle_model::{
    AnswerStream, CallError, CallTimeouts, Dial, DialFuture, Endpoint, Io, ModelClient, ModelQuery,
    ResponsesRequest, WireFormat,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::outcome::{Attempts, CallFailure};

/// A response of an upstream, and the expected error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Upstream {
    from: String,
    wire: String,
    status: u16,
    #[serde(default)]
    headers: toml::Table,
    body: String,
    class: String,
    info: String,
    retry_after_ms: Option<u64>,
}

fn table() -> Vec<Upstream> {
    #[derive(Deserialize)]
    struct Table {
        answer: Vec<Upstream>,
    }
    let table: Table = toml::from_str(include_str!("answers.toml")).expect("the table");
    table.answer
}

/// A server that responds to every request with these bytes and closes the connection.
#[derive(Debug)]
struct CannedEndpoint(Arc<[u8]>);

impl Dial for CannedEndpoint {
    fn dial<'a>(&'a self, _: &'a str, _: u16) -> DialFuture<'a> {
        let (near, mut far) = tokio::io::duplex(64 << 10);
        let bytes = self.0.clone();
        tokio::spawn(async move {
            let mut request = Vec::new();
            // The requests have a body, so more than the head follows.
            while !request.windows(4).any(|it| it == b"\r\n\r\n") {
                if far.read_buf(&mut request).await.unwrap_or(0) == 0 {
                    return;
                }
            }
            let _ = far.write_all(&bytes).await;
        });
        Box::pin(async move { Ok(Box::new(near) as Box<dyn Io>) })
    }
}

impl Upstream {
    fn bytes(&self) -> Arc<[u8]> {
        let kind = match self.status {
            200 => "text/event-stream",
            _ => "application/json",
        };
        let mut head = format!("HTTP/1.1 {} No\r\n", self.status);
        if !self.headers.contains_key("content-type") {
            head += &format!("content-type: {kind}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {}\r\n", value.as_str().expect("a text"));
        }
        let length = self.body.len();
        let all = format!("{head}content-length: {length}\r\n\r\n{}", self.body);
        all.into_bytes().into()
    }

    /// Makes a call and returns its error.
    async fn called(&self) -> CallError {
        let client = ModelClient::with_dial(Arc::new(CannedEndpoint(self.bytes())));
        let endpoint: Endpoint = "http://vendor/v1".parse().expect("an address");
        let limits = CallTimeouts::default();
        let question = ModelQuery::default();
        let stream = match WireFormat::from_name(&self.wire).expect("a wire") {
            WireFormat::Responses => {
                let request = ResponsesRequest::default();
                client.responses(&endpoint, &request, limits).await
            }
            WireFormat::Chat => client.chat(&endpoint, &question, limits).await,
            WireFormat::Messages => client.messages(&endpoint, &question, limits).await,
            WireFormat::Gemini => client.gemini(&endpoint, &question, limits).await,
        };
        match stream {
            Ok(stream) => broken_off(stream).await,
            Err(error) => error,
        }
    }
}

async fn broken_off(mut stream: AnswerStream) -> CallError {
    loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the answer ended well"),
            Err(error) => return error,
        }
    }
}

/// The error as a client sees it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReportedError {
    class: String,
    info: String,
    is_tried_again: bool,
}

/// Maps an error to the client's view, and the time at which a client may retry.
fn reported(error: CallError) -> (ReportedError, Option<i64>) {
    let (error, is_tried_again) = match Attempts::of(1).ended(&CallFailure::Call(error)) {
        ModelEnd::Broke { error, .. } => (error, true),
        ModelEnd::Failed { error } => (error, false),
        end => panic!("{end:?}"),
    };
    let turn = turn_view(&TurnEntry {
        turn: TurnId::mint(),
        root: None,
        from: Seq::ZERO,
        started_at: Timestamp(0),
        ended: Some((TurnEnd::Failed(error), Timestamp(0))),
    });
    let error_json = serde_json::to_value(turn.error).expect("JSON");
    let info = match &error_json["codexErrorInfo"] {
        Value::String(name) => name.clone(),
        other => {
            let names = other.as_object().into_iter().flat_map(|it| it.keys());
            names.cloned().collect()
        }
    };
    let class = error_json["class"].as_str().unwrap_or_default().to_owned();
    let reported_error = ReportedError {
        class,
        info,
        is_tried_again,
    };
    (reported_error, error_json["retryAtMs"].as_i64())
}

#[tokio::test]
async fn every_answer_has_a_class() {
    let table = table();
    assert!(table.len() >= 60, "{}", table.len());
    for upstream in table {
        let what = format!("{} {} {}", upstream.from, upstream.status, upstream.body);
        let error = upstream.called().await;
        let wait = error.retry_after();
        let expected_wait = upstream.retry_after_ms.map(Duration::from_millis);
        assert_eq!(wait, expected_wait, "{what}");
        let is_transient = error.is_transient();
        let Timestamp(before) = now();
        let (actual, retry_at) = reported(error);
        let class_and_info = (actual.class.as_str(), actual.info.as_str());
        assert_eq!(
            class_and_info,
            (&*upstream.class, &*upstream.info),
            "{what}"
        );
        assert_eq!(actual.is_tried_again, is_transient, "{what}");
        let wait = retry_at.map(|it| it - before);
        match upstream.retry_after_ms {
            Some(expected) => assert!(wait >= Some(expected.cast_signed()), "{what}: {wait:?}"),
            None => assert_eq!(wait, None, "{what}"),
        }
    }
}

/// The page lists every kind of error, and no other.
#[tokio::test]
async fn the_docs_list_every_error() {
    let page = include_str!("../../../docs/models.md");
    let (_, rows) = page
        .split_once("| What happened | `class` |")
        .expect("the table");
    let (rows, _) = rows.split_once("\n\n").expect("the end of the table");
    let listed: BTreeSet<ReportedError> = rows
        .lines()
        .skip(2)
        .map(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            let word = |at: usize| cells[at].trim_matches(['`', ' ', '|']).to_owned();
            ReportedError {
                class: word(1),
                info: word(2),
                is_tried_again: word(3).starts_with("yes"),
            }
        })
        .collect();
    let mut actual = BTreeSet::new();
    for upstream in table() {
        actual.insert(reported(upstream.called().await).0);
    }
    let limit = Duration::from_secs(1);
    let address = || "http://vendor/v1".to_owned();
    let what = || "no".to_owned();
    for error in [
        CallError::Connect {
            address: address(),
            what: what(),
        },
        CallError::Untrusted {
            address: address(),
            what: what(),
        },
        CallError::Silent { limit },
        CallError::TooLong { limit },
    ] {
        actual.insert(reported(error).0);
    }
    assert_eq!(actual, listed);
}
