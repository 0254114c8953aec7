//! Malformed frames. A seeded generator makes them, `reference` says the right reply to each, and
//! the server must send exactly those replies, continue to serve, and keep its memory bounded.
//!
//! `RADDLE_HOSTILE_FRAMES` sets how many are sent over each transport.

mod breaches;
mod expected;
mod frames;
mod memory;

use std::collections::BTreeMap;

use serde_json::json;

use self::breaches::Breaches;
use self::expected::{ExpectedReply, Replies};
use self::frames::Frames;
use crate::support::server::TestServer;
use crate::support::stdio::Pipes;
use crate::support::websocket::{self, FIN, TEXT, Websocket, WebsocketEvent};
use crate::support::{TEST_TIMEOUT, request};

/// Small, so that frames over it are cheap to make.
const CAP: usize = 65_536;

/// How many frames are sent before their replies are counted.
const BATCH: usize = 64;

fn frame_count() -> usize {
    match std::env::var("RADDLE_HOSTILE_FRAMES") {
        Ok(count) => count.parse().expect("RADDLE_HOSTILE_FRAMES is a number"),
        Err(_) => 5000,
    }
}

#[test]
fn over_stdio() {
    let mut server = TestServer::start(&["--max-message-bytes", &CAP.to_string()]);
    let mut pipes = server.pipes();
    pipes.hello();
    let mut frames = Frames::new(1, CAP);
    let mut counts = SentCounts::default();
    while counts.frames < frame_count() {
        let mut replies = Replies::default();
        for _ in 0..BATCH {
            let frame = frames.next();
            pipes.send(&frame);
            // A newline inside a frame splits it into several lines.
            for line in frame.split(|byte| *byte == b'\n') {
                counts.add(&ExpectedReply::of_line(line, CAP), &mut replies);
            }
            counts.frames += 1;
        }
        probe_stdio(&mut pipes, &mut replies, counts.frames);
    }
    pipes.close();
    assert_eq!(pipes.next(), None, "more replies than frames that ask");
    let ended = server.ended();
    assert!(ended.status.success(), "{:?}", ended.status);
    assert_eq!(ended.count("noise"), counts.of("counted"));
    assert_eq!(ended.count("too_long"), counts.of("too long"));
    counts.check(
        "stdio",
        &[
            "result", "-32600", "-32601", "counted", "ignored", "too long",
        ],
    );
}

#[test]
fn over_a_websocket() {
    let cap = CAP.to_string();
    let server = TestServer::open_websocket(&["--max-message-bytes", &cap]);
    let connect = || server.client();
    let counts = over_websockets(connect, 2);
    let ended = server.stop();
    assert_eq!(ended.count("noise"), counts.of("counted"));
    counts.check("ws", WEBSOCKET_KINDS);
}

#[test]
fn over_a_unix_socket() {
    let cap = CAP.to_string();
    let server = TestServer::start(&["--listen", "unix://", "--max-message-bytes", &cap]);
    let connect = || server.unix_client();
    let counts = over_websockets(connect, 3);
    let ended = server.stop();
    assert_eq!(ended.count("noise"), counts.of("counted"));
    counts.check("unix", WEBSOCKET_KINDS);
}

/// A client that reads late still gets its replies, and then the reason for the close.
#[test]
fn replies_are_sent_before_the_close() {
    let cap = CAP.to_string();
    let server = TestServer::open_websocket(&["--max-message-bytes", &cap]);
    let mut socket = server.client();
    let mut replies = Replies::default();
    for number in 0..2000 {
        let id = format!("{number} {}", "x".repeat(1000));
        socket.send(&request(&*id, "permissionProfile/list", json!({})));
        replies.expect(&ExpectedReply::Reply {
            id: id.into(),
            code: None,
        });
    }
    socket.push(
        &websocket::frame(FIN | TEXT, &vec![b' '; 20 * CAP]),
        TEST_TIMEOUT,
    );
    expect_close(&mut socket, &mut replies, 1009);
    drop(socket);
    server.stop();
}

const WEBSOCKET_KINDS: &[&str] = &[
    "result", "-32600", "-32601", "counted", "ignored", "1000", "1002", "1007", "1009",
];

fn over_websockets(connect: impl Fn() -> Websocket, seed: u64) -> SentCounts {
    let mut frames = Frames::new(seed, CAP);
    let mut breaches = Breaches::new(seed, CAP);
    let mut counts = SentCounts::default();
    let mut socket = connect();
    while counts.frames < frame_count() {
        let mut replies = Replies::default();
        let mut close = None;
        for _ in 0..BATCH {
            let (bytes, expected) = breaches.next().unwrap_or_else(|| {
                let message = frames.next();
                let expected = ExpectedReply::of_message(&message, CAP);
                // Fragmentation does not change the meaning of a message.
                (breaches.cut(&message), expected)
            });
            counts.frames += 1;
            counts.add(&expected, &mut replies);
            if let ExpectedReply::Close(code) = expected {
                // The server may close before it has read all of this.
                socket.push(&bytes, TEST_TIMEOUT);
                close = Some(code);
                break;
            }
            socket.raw(&bytes);
        }
        match close {
            None => probe_websocket(&mut socket, &mut replies, counts.frames),
            Some(code) => {
                expect_close(&mut socket, &mut replies, code);
                socket = connect();
            }
        }
    }
    socket.raw(&websocket::frame(
        FIN | websocket::CLOSE,
        &1000_u16.to_be_bytes(),
    ));
    expect_close(&mut socket, &mut Replies::default(), 1000);
    counts
}

/// A valid request after the bad frames: when its response comes, all replies to them have come.
fn probe(number: usize) -> (String, Vec<u8>) {
    let id = format!("probe {number}");
    let frame = request(&*id, "permissionProfile/list", json!({}));
    (id, frame)
}

fn probe_stdio(pipes: &mut Pipes, replies: &mut Replies, number: usize) {
    let (id, frame) = probe(number);
    pipes.send(&frame);
    loop {
        let message = pipes.receive();
        if message["id"] == id.as_str() {
            break;
        }
        replies.receive(&message);
    }
    replies.check();
}

fn probe_websocket(socket: &mut Websocket, replies: &mut Replies, number: usize) {
    let (id, frame) = probe(number);
    socket.raw(&websocket::frame(FIN | TEXT, &frame));
    loop {
        let message = socket.receive();
        if message["id"] == id.as_str() {
            break;
        }
        replies.receive(&message);
    }
    replies.check();
}

fn expect_close(socket: &mut Websocket, replies: &mut Replies, expected: u16) {
    loop {
        match socket.next() {
            WebsocketEvent::Message(message) => replies.receive(&message),
            WebsocketEvent::Close { code, reason } => {
                assert_eq!(code, expected, "{reason}");
                break;
            }
            WebsocketEvent::End => panic!("the connection ended without close {expected}"),
        }
    }
    socket.end();
    replies.check();
}

/// The number of sent frames, by expected reply.
#[derive(Default)]
struct SentCounts {
    frames: usize,
    kinds: BTreeMap<String, u64>,
}

impl SentCounts {
    fn add(&mut self, expected: &ExpectedReply, replies: &mut Replies) {
        *self.kinds.entry(expected.kind()).or_default() += 1;
        replies.expect(expected);
    }

    fn of(&self, kind: &str) -> u64 {
        self.kinds.get(kind).copied().unwrap_or(0)
    }

    /// A run without a kind of frame proves nothing about it.
    fn check(&self, transport: &str, kinds: &[&str]) {
        eprintln!(
            "figure: {transport}: {} frames: {:?}",
            self.frames, self.kinds
        );
        for kind in kinds {
            assert!(self.of(kind) > 0, "no frame of kind {kind}");
        }
        assert_eq!(self.kinds.len(), kinds.len(), "{:?}", self.kinds);
    }
}
