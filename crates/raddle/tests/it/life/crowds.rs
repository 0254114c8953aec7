//! Clients that cost something and give nothing, beside one that is served as if they were not there.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::server::Server;
use crate::support::websocket::{FIN, TEXT, Websocket, frame};
use crate::support::{code, request};

const MIB: u64 = 1 << 20;

/// How long a few hundred cheap requests take, one after the other.
fn ask(client: &mut Websocket) -> Duration {
    let begun = Instant::now();
    for id in 0..300 {
        let answer = client.ask(&request(id, "model/list", json!({})));
        assert_eq!(answer["id"], id);
        assert_eq!(code(&answer), None);
    }
    begun.elapsed()
}

/// Generous, because the tests share the machine; a client that waits for another one takes half a minute.
fn is_served(taken: Duration, alone: Duration) {
    assert!(
        taken < 10 * alone + Duration::from_secs(2),
        "{taken:?}, and {alone:?} alone"
    );
}

#[test]
fn two_hundred_that_do_not_finish_their_first_line() {
    let server = Server::open_websocket(&[]);
    let mut client = server.client();
    let alone = ask(&mut client);
    let crowd: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).expect("the door is open");
            stream.write_all(b"G").expect("one byte");
            stream
        })
        .collect();
    is_served(ask(&mut client), alone);
    // Someone new comes in beside them, too.
    is_served(ask(&mut server.client()), alone);
    drop((crowd, client));
    let ended = server.stop();
    assert_eq!(ended.connections(), 2);
}

#[test]
fn one_that_never_reads() {
    let arguments = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];
    let server = Server::start_measured(&arguments);
    let mut client = server.client();
    let alone = ask(&mut client);
    let mut silent = server.client();

    server.forget_peak();
    let before = server.memory("VmRSS");
    // Each answer is as long as the question, and more.
    let question = frame(
        FIN | TEXT,
        &request("x".repeat(1000), "model/list", json!({})),
    );
    let questions = question.repeat(1000);
    let mut sent = 0;
    loop {
        let count = silent.push(&questions, Duration::from_millis(300));
        sent += count;
        if count < questions.len() {
            break;
        }
        assert!(
            sent < 100 << 20,
            "the server reads on for a client that does not"
        );
    }
    is_served(ask(&mut client), alone);
    is_served(ask(&mut server.client()), alone);

    // Answers wait in a queue of 8 MiB, and each may stand in a block up to twice its length.
    let grown = server.memory("VmHWM") - before;
    eprintln!(
        "never read: {} MiB sent, grew by {} MiB",
        sent as u64 / MIB,
        grown / MIB
    );
    assert!(grown <= 2 * 8 * MIB + 4 * MIB, "grew by {grown} bytes");
    drop((silent, client));
    server.stop();
}
