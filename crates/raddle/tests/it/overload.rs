//! More requests than may run at once: each is answered exactly once, and a refusal says when to try
//! again.

use std::collections::HashMap;
use std::io::Write;

use serde_json::{Value, json};

use crate::support::config_lock::ConfigWriteLock;
use crate::support::server::TestServer;
use crate::support::websocket::Websocket;
use crate::support::{code, request};

const REQUESTS: usize = 10_000;

/// How many one connection may have running.
const RUNNING_MAX: usize = 256;

/// A refusal that tells the client to come back; anything else must be a result.
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

/// Takes all answers; says how many were refusals.
fn take_answers(mut next: impl FnMut() -> Value) -> usize {
    let mut seen = vec![false; REQUESTS];
    let mut refused = 0;
    for _ in 0..REQUESTS {
        let answer = next();
        let id = answer["id"].as_u64().expect("an id of ours") as usize;
        assert!(
            !std::mem::replace(&mut seen[id], true),
            "two answers for {id}"
        );
        refused += usize::from(is_overloaded(&answer));
    }
    assert!(seen.iter().all(|seen| *seen));
    refused
}

/// Cheap requests, requests for the disk, and both by turns.
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
        // All of it fits into what the server and the system will hold, so one thread will do.
        for message in requests(kind) {
            client.send(&message);
        }
        let refused = take_answers(|| client.receive());
        eprintln!("ws, kind {kind}: {refused} of {REQUESTS} refused");
        client.leave();
    }
    server.stop();
}

#[test]
fn what_is_beyond_the_bound_is_refused_and_the_rest_is_done() {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    let slow = ConfigWriteLock::new(server.home());
    for id in 0..REQUESTS {
        client.send(&ConfigWriteLock::request(id));
    }
    // Nothing that runs can end yet, so exactly the rest is refused.
    let mut answers: HashMap<u64, bool> = HashMap::new();
    let mut take = |client: &mut Websocket| {
        let answer = client.receive();
        let id = answer["id"].as_u64().expect("an id of ours");
        let twice = answers.insert(id, is_overloaded(&answer));
        assert_eq!(twice, None, "two answers for {id}");
        answers.len()
    };
    while take(&mut client) < REQUESTS - RUNNING_MAX {}
    // A connection of its own is not held up by this one.
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
fn an_id_in_use_is_refused_and_the_first_one_goes_on() {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    let slow = ConfigWriteLock::new(server.home());
    client.send(&ConfigWriteLock::request(7));
    let refused = client.ask(&request(7, "account/read", json!({})));
    assert_eq!(refused["id"], 7);
    assert_eq!(code(&refused), Some(-32600));
    // The same as text is another id.
    assert_eq!(
        code(&client.ask(&request("7", "account/read", json!({})))),
        None
    );
    drop(slow);
    let answer = client.receive();
    assert_eq!(answer["id"], 7);
    ConfigWriteLock::check(&answer);
    client.leave();
    server.stop();
}

/// A client may use an id again the moment it has the answer.
#[test]
fn an_id_is_free_once_it_is_answered() {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    for _ in 0..3000 {
        let answer = client.ask(&request(1, "fs/getMetadata", json!({ "path": "/" })));
        assert_eq!(code(&answer), None, "{answer}");
    }
    client.leave();
    server.stop();
}
