//! More requests than may run at once: each gets exactly one response, and a rejection says when to
//! retry.

use std::collections::HashMap;
use std::io::Write;

use serde_json::{Value, json};

use crate::support::config_lock::ConfigWriteLock;
use crate::support::server::TestServer;
use crate::support::websocket::Websocket;
use crate::support::{code, request};

const REQUESTS: usize = 10_000;

/// How many requests may run on one connection.
const RUNNING_MAX: usize = 256;

/// Whether a response is a rejection that asks for a retry; any other must be a result.
fn is_overloaded(answer: &Value) -> bool {
    let Some(code) = code(answer) else {
        return false;
    };
    assert_eq!(code, -32001, "{answer}");
    let data = &answer["error"]["data"];
    assert_eq!(data["errorInfo"], "server_overloaded", "{answer}");
    assert!(data["retryAfterMs"].is_u64(), "{answer}");
    true
}

/// Reads all responses. Returns how many were rejections.
fn take_answers(mut next: impl FnMut() -> Value) -> usize {
    let mut answered = vec![false; REQUESTS];
    let mut refused = 0;
    for _ in 0..REQUESTS {
        let answer = next();
        let id = answer["id"].as_u64().expect("an id of ours") as usize;
        assert!(
            !std::mem::replace(&mut answered[id], true),
            "two answers for {id}"
        );
        refused += usize::from(is_overloaded(&answer));
    }
    assert!(answered.iter().all(|is_answered| *is_answered));
    refused
}

/// Cheap requests, requests for the disk, and both in alternation.
fn requests(kind: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..REQUESTS).map(move |id| match (kind, id % 2) {
        (0, _) | (2, 0) => request(id, "permissionProfile/list", json!({})),
        _ => request(id, "fs/getMetadata", json!({ "path": "/" })),
    })
}

#[test]
fn ten_thousand_over_stdio() {
    let mut server = TestServer::start(&[]);
    let mut pipes = server.pipes();
    pipes.hello();
    let mut stdin = pipes.take_stdin();
    for kind in 0..3 {
        let lines = requests(kind).flat_map(|mut line| {
            line.push(b'\n');
            line
        });
        let lines: Vec<u8> = lines.collect();
        let writer = std::thread::spawn(move || {
            stdin.write_all(&lines).expect("the server reads");
            stdin
        });
        let refused = take_answers(|| pipes.receive());
        stdin = writer.join().expect("no panic");
        eprintln!("stdio, kind {kind}: {refused} of {REQUESTS} refused");
        if kind == 0 {
            assert_eq!(refused, 0, "what is answered at once never piles up");
        }
    }
    drop(stdin);
    assert_eq!(pipes.next(), None);
    assert!(server.ended().status.success());
}

#[test]
fn ten_thousand_over_a_websocket() {
    let server = TestServer::open_websocket(&[]);
    for kind in 0..3 {
        let mut client = server.client();
        // All of it fits into the buffers of the server and the system, so one thread suffices.
        for message in requests(kind) {
            client.send(&message);
        }
        let refused = take_answers(|| client.receive());
        eprintln!("ws, kind {kind}: {refused} of {REQUESTS} refused");
        client.disconnect();
    }
    server.stop();
}

#[test]
fn requests_over_the_limit_are_rejected_and_the_rest_completes() {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    let slow = ConfigWriteLock::new(server.home());
    for id in 0..REQUESTS {
        client.send(&ConfigWriteLock::request(id));
    }
    // No running request can end yet, so exactly the others are rejected.
    let mut answers: HashMap<u64, bool> = HashMap::new();
    let mut take = |client: &mut Websocket| {
        let answer = client.receive();
        let id = answer["id"].as_u64().expect("an id of ours");
        let twice = answers.insert(id, is_overloaded(&answer));
        assert_eq!(twice, None, "two answers for {id}");
        answers.len()
    };
    while take(&mut client) < REQUESTS - RUNNING_MAX {}
    // Another connection is not affected.
    let mut other = server.client();
    assert_eq!(
        code(&other.ask(&request(1, "account/read", json!({})))),
        None
    );

    drop(slow);
    while take(&mut client) < REQUESTS {}
    let refused = |(_, refused): &(&u64, &bool)| **refused;
    assert_eq!(
        answers.iter().filter(refused).count(),
        REQUESTS - RUNNING_MAX
    );
    assert!(
        (0..RUNNING_MAX as u64).all(|id| !answers[&id]),
        "the first ones were let in"
    );
    drop((client, other));
    server.stop();
}

#[test]
fn an_id_in_use_is_rejected_and_the_first_request_continues() {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    let slow = ConfigWriteLock::new(server.home());
    client.send(&ConfigWriteLock::request(7));
    let refused = client.ask(&request(7, "account/read", json!({})));
    assert_eq!(refused["id"], 7);
    assert_eq!(code(&refused), Some(-32600));
    // The same as a string is another id.
    assert_eq!(
        code(&client.ask(&request("7", "account/read", json!({})))),
        None
    );
    drop(slow);
    let answer = client.receive();
    assert_eq!(answer["id"], 7);
    ConfigWriteLock::check(&answer);
    client.disconnect();
    server.stop();
}

/// A client may reuse an id as soon as it has the response.
#[test]
fn an_id_is_free_once_it_is_answered() {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    for _ in 0..3000 {
        let answer = client.ask(&request(1, "fs/getMetadata", json!({ "path": "/" })));
        assert_eq!(code(&answer), None, "{answer}");
    }
    client.disconnect();
    server.stop();
}
