//! The log at the level `info`: the request and the thread of a line, and the end of each turn.

use serde_json::{Value, json};

use super::{MockClient, MockModel};
use crate::support::request;
use crate::support::server::TestServer;

/// A token costs a thousandth of a dollar.
const PRICES: &str = "prices=[{ provider = 'mock', model = 'mock', input = 1000, output = 1000 }]";

/// A client of a server that logs at `info` in this format.
fn client(script: &str, format: &str) -> MockClient {
    let mock = MockModel::start(script);
    let mut arguments = mock.arguments(&["stream_max_retries=0", "request_max_retries=0"]);
    arguments.extend(["-c".to_owned(), PRICES.to_owned()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let variables = [("RADDLE_LOG", "info"), ("RADDLE_LOG_FORMAT", format)];
    let mut server = TestServer::start_with(&arguments, &variables);
    let mut pipes = server.pipes();
    let params = json!({
        "clientInfo": { "name": "it", "version": "0" },
        "capabilities": { "extensions": { "raddle/idempotency": {} } },
    });
    let answer = pipes.ask(&request("hello", "initialize", params));
    assert!(answer["result"].is_object(), "{answer}");
    MockClient::on(mock, server, pipes)
}

/// Ends the server, and returns its log.
fn log_of(mut client: MockClient) -> Vec<String> {
    client.pipes.close();
    while client.pipes.next().is_some() {}
    client.server.ended().log
}

/// The lines of a log in JSON.
fn events(log: &[String]) -> Vec<Value> {
    let lines = log.iter();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The lines with this message.
fn with_message<'a>(events: &'a [Value], message: &str) -> Vec<&'a Value> {
    let events = events.iter();
    events
        .filter(|it| it["fields"]["message"] == message)
        .collect()
}

#[test]
fn the_end_of_each_turn_is_one_line_that_names_its_request() {
    let script = "[[answer]]\nsteps = [{ usage = { input = 40, cached = 10, output = 2 } }, { call = 'nothing', arguments = {} }]\n\
                  [[answer]]\nsteps = [{ usage = { input = 50, output = 3 } }, { text = 'fine' }]\n\
                  [[answer]]\nsteps = [{ fault = '429' }]\n\
                  [[answer]]\nsteps = [{ fault = 'stall' }]";
    let mut client = client(script, "json");
    client.pipes.send(br#"{"id":"unknown","result":{}}"#);
    let mut turns = Vec::new();
    let expected_ends = [
        json!({
            "outcome": "completed", "failure": null, "model": "mock",
            "input_tokens": 90, "cached_tokens": 10, "output_tokens": 5, "cost_usd": 0.095,
        }),
        json!({
            "outcome": "failed", "failure": "rate_limit", "class": "rate_limited", "model": "mock",
            "error": "the model's vendor answered 429: Too many requests.", "input_tokens": 0, "output_tokens": 0,
        }),
        json!({ "outcome": "interrupted", "failure": null, "model": "mock" }),
    ];
    for (end, key) in expected_ends.iter().zip([None, Some("key"), None]) {
        let input = json!([{ "type": "text", "text": "go on" }]);
        let mut params = json!({ "threadId": client.thread, "input": input });
        if let Some(key) = key {
            params["clientRequestId"] = key.into();
        }
        client.ask("turn/start", params);
        let request = client.last_id;
        let messages = client.until(|it| it["method"] == "turn/started");
        let turn = messages.last().expect("a turn")["params"]["turn"]["id"].clone();
        if end["outcome"] == "interrupted" {
            client.ask(
                "turn/interrupt",
                json!({ "threadId": client.thread, "turnId": turn }),
            );
        }
        client.until(|it| it["method"] == "turn/completed");
        turns.push((request, turn));
    }

    let thread = client.thread.clone();
    let events = events(&log_of(client));
    let connection =
        json!({ "name": "connection", "number": 1, "transport": "stdio", "client": "it" });
    let ends = with_message(&events, "turn ended");
    assert_eq!(ends.len(), turns.len(), "{ends:?}");
    for ((line, (request, turn)), expected) in ends.iter().zip(&turns).zip(&expected_ends) {
        let level = match expected["outcome"].as_str() {
            Some("failed") => "WARN",
            _ => "INFO",
        };
        assert_eq!(line["level"], level, "{line}");
        assert!(line["timestamp"].is_string(), "{line}");
        let spans = json!([
            connection,
            { "name": "request", "method": "turn/start", "id": request },
            { "name": "thread", "id": thread },
            { "name": "turn", "id": turn },
        ]);
        assert_eq!(line["spans"], spans, "{line}");
        for (name, value) in expected.as_object().expect("fields") {
            assert_eq!(line["fields"][name], *value, "{name} of {line}");
        }
        assert!(line["fields"]["duration_ms"].is_u64(), "{line}");
    }
    // A line about no request names the connection only.
    let strays = with_message(&events, "response to an unknown request id");
    let spans: Vec<&Value> = strays.iter().map(|it| &it["spans"]).collect();
    assert_eq!(spans, [&json!([connection])]);
}

/// At the default level there are no spans, so the line itself names the thread and the turn.
#[test]
fn a_failed_turn_is_logged_at_the_default_level() {
    let mock = MockModel::start("access = { keys = ['sk-other'] }");
    let arguments = mock.arguments(&["experimental_bearer_token='sk-planted-secret'"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut client = MockClient::at(mock, TestServer::start_with(&arguments, &[]));
    let (_, turn) = client.say("hello");
    let thread = client.thread.clone();
    let log = log_of(client);
    let events = events(&log);
    let ends = with_message(&events, "turn ended");
    let [line] = ends[..] else {
        panic!("{log:?}");
    };
    assert_eq!(line["level"], "WARN", "{line}");
    let fields = &line["fields"];
    for (name, expected) in [
        ("thread", json!(thread)),
        ("turn", turn["id"].clone()),
        ("failure", json!("unauthorized")),
        ("class", json!("auth")),
    ] {
        assert_eq!(fields[name], expected, "{line}");
    }
    let error = fields["error"].as_str().expect("a text");
    assert!(
        error.starts_with("the model's vendor answered 401: "),
        "{line}"
    );
    assert!(!log.concat().contains("sk-planted-secret"), "{log:?}");
}

/// An id of the client's choice cannot forge a line, neither in a span nor in a field.
#[test]
fn a_line_of_text_begins_with_its_spans() {
    let mut client = client("", "text");
    let stray = json!({ "id": "a\n\u{1b}[1mforged", "result": {} });
    client.pipes.send(stray.to_string().as_bytes());
    let thread = client.thread.clone();
    let mut expected_lines = Vec::new();
    for (id, shown) in [
        (json!(7), "7"),
        (json!("a\n\u{1b}[1mb"), r#""a\n\u{1b}[1mb""#),
    ] {
        let input = json!([{ "type": "text", "text": "hello" }]);
        let params = json!({ "threadId": thread, "input": input });
        let request = json!({ "id": id, "method": "turn/start", "params": params });
        client.pipes.send(request.to_string().as_bytes());
        let messages = client.until(|it| it["method"] == "turn/completed");
        let turn = &messages.last().expect("an end")["params"]["turn"]["id"];
        let turn = turn.as_str().expect("an id");
        expected_lines.push(format!(
            "INFO connection{{number=1 transport=stdio client=\"it\"}}:request{{method=turn/start id={shown}}}:\
             thread{{id={thread}}}:turn{{id={turn}}}: raddle_agent::task::turn_log: turn ended outcome=\"completed\" "
        ));
    }
    let log = log_of(client);
    let has_time = |it: &String| it.starts_with("20") && it.get(10..11) == Some("T");
    assert!(log.iter().all(has_time), "{log:?}");
    let stray_lines: Vec<&String> = log.iter().filter(|it| it.contains("forged")).collect();
    let expected_stray = r#"response to an unknown request id id=String("a\n\u{1b}[1mforged")"#;
    let is_one_line = matches!(stray_lines[..], [line] if line.ends_with(expected_stray));
    assert!(is_one_line, "{log:?}");
    let ends: Vec<&String> = log.iter().filter(|it| it.contains("turn ended")).collect();
    assert_eq!(ends.len(), expected_lines.len(), "{log:?}");
    for (line, expected) in ends.iter().zip(&expected_lines) {
        assert!(line.contains(expected.as_str()), "{line}");
    }
}

#[test]
fn deltas_are_not_logged_at_info() {
    let mut client = client("", "json");
    let turns = ["MOCK text n=1 size=8", "MOCK text n=5000 size=8"].map(|input| {
        let (_, turn) = client.say(input);
        turn["id"].clone()
    });
    let log = log_of(client);
    let events = events(&log);
    let lines = turns.map(|turn| {
        let is_in_turn = |it: &&Value| {
            let mut spans = it["spans"].as_array().into_iter().flatten();
            spans.any(|span| span["id"] == turn)
        };
        events.iter().filter(is_in_turn).count()
    });
    assert_eq!(lines, [1, 1], "{log:?}");
    assert!(log.len() < 50, "{log:?}");
}
