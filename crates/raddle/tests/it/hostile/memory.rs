//! The memory cost of hostile frames: at most twice the cap above the level before.

use serde_json::json;

use crate::support::request;
use crate::support::server::TestServer;
use crate::support::websocket::{FIN, TEXT, Websocket, WebsocketEvent, frame};

const MIB: usize = 1 << 20;

/// Memory beside the frames, independent of the cap: read and write buffers (less than 1 MiB
/// together), stacks and arenas of threads that had not run before, newly used pages of code. A
/// server that receives only small frames grows by a quarter of a MiB.
const SLACK: usize = 4 * MIB;

/// Frames of about the size of the cap, each in a form that could tempt a server to copy it.
fn large_frames(bytes: usize) -> Vec<Vec<u8>> {
    let x = "x".repeat(bytes);
    let half = bytes / 2;
    vec![
        // Not a message.
        x.clone().into_bytes(),
        vec![b'['; bytes],
        vec![b' '; bytes],
        [b"\"".to_vec(), "é".repeat(half).into_bytes()].concat(),
        format!("{{\"{x}\":1}}").into_bytes(),
        format!("[{}1]", "1,".repeat(half)).into_bytes(),
        // Rejected, and the reply must not contain the rejected text.
        format!(r#"{{"id":"{x}","method":"permissionProfile/list","params":{{}}}}"#).into_bytes(),
        format!(r#"{{"id":"\n{x}","method":"permissionProfile/list","params":{{}}}}"#).into_bytes(),
        format!(r#"{{"id":1,"method":"{x}"}}"#).into_bytes(),
        format!(r#"{{"id":1,"method":"\n{x}"}}"#).into_bytes(),
        format!(r#"{{"id":1,"method":"permissionProfile/list","params":"{x}"}}"#).into_bytes(),
        format!(r#"{{"id":1,"method":"permissionProfile/list","params":{{"limit":"{x}"}}}}"#)
            .into_bytes(),
        format!(r#"{{"id":1,"method":"permissionProfile/list","params":{{"cursor":"{x}"}}}}"#)
            .into_bytes(),
        format!(
            r#"{{"id":1,"method":"permissionProfile/list","params":{}{}}}"#,
            "[".repeat(half),
            "]".repeat(half)
        )
        .into_bytes(),
        // Valid, but large.
        format!(r#"{{"id":1,"method":"permissionProfile/list","params":{{"filler":"{x}"}}}}"#)
            .into_bytes(),
    ]
}

/// Frames with so many values that a method which parses them would hold many times the frame.
fn large_lists(bytes: usize) -> Vec<Vec<u8>> {
    // Beside the list, a frame has its method and a few names.
    let list = |row: &str| vec![row; (bytes - 200) / (row.len() + 1)].join(",");
    lists_of(list)
}

/// The same with the maximum number of values of a request.
fn longest_lists() -> Vec<Vec<u8>> {
    const VALUES_MAX: usize = 100_000;
    let list = |row: &str| {
        let marks = |it: &char| matches!(it, ',' | ':' | '[' | '{');
        let values = row.chars().filter(marks).count() + 1;
        vec![row; (VALUES_MAX - 20) / values].join(",")
    };
    lists_of(list)
}

fn lists_of(list: impl Fn(&str) -> String) -> Vec<Vec<u8>> {
    let edit = r#"{"keyPath":"a","value":1,"mergeStrategy":"replace"}"#;
    let request = |method: &str, params: String| {
        format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#).into_bytes()
    };
    // Rejected by its path after it is parsed.
    let write = |value: String| {
        let edit = format!(r#"{{"keyPath":"a..b","value":{value},"mergeStrategy":"replace"}}"#);
        request("config/batchWrite", format!(r#"{{"edits":[{edit}]}}"#))
    };
    vec![
        request("skills/list", format!(r#"{{"cwds":[{}]}}"#, list(r#""""#))),
        request(
            "fuzzyFileSearch",
            format!(r#"{{"query":"x","roots":[{}]}}"#, list(r#""""#)),
        ),
        request(
            "config/batchWrite",
            format!(r#"{{"filePath":"/none","edits":[{}]}}"#, list(edit)),
        ),
        write(format!("[{}]", list("1"))),
        write(format!("[{}]", list("[]"))),
        write(format!("[{}]", list(r#"{"":0}"#))),
    ]
}

/// Returns the peak memory of a server during `work`, minus the level before.
fn growth(server: &TestServer, work: impl FnOnce()) -> usize {
    server.forget_peak();
    let before = server.memory("VmRSS");
    work();
    (server.memory("VmHWM") - before) as usize
}

fn check(what: &str, growth: usize, cap: usize) {
    eprintln!(
        "{what}: grew by {:.1} MiB at a cap of {} MiB",
        growth as f64 / MIB as f64,
        cap / MIB
    );
    assert!(
        growth <= 2 * cap + SLACK,
        "{what}: grew by {growth} bytes at a cap of {cap}"
    );
}

/// Sends frames over stdio at once, and waits until the server has read them all.
fn over_stdio(frames: &[&[u8]], cap: usize) -> usize {
    let mut server = TestServer::start_measured(&["--max-message-bytes", &cap.to_string()]);
    let mut pipes = server.pipes();
    pipes.hello();
    let grown = growth(&server, || {
        for frame in frames {
            pipes.send(frame);
        }
        pipes.send(&request("probe", "permissionProfile/list", json!({})));
        while pipes.receive()["id"] != "probe" {}
    });
    server.stop();
    grown
}

/// The same over a websocket, which is opened again whenever the server closes it.
fn over_websocket(frames: &[&[u8]], cap: usize) -> usize {
    let cap_text = cap.to_string();
    let arguments = [
        "--listen",
        "ws://127.0.0.1:0",
        "--insecure-loopback",
        "--max-message-bytes",
        &cap_text,
    ];
    let server = TestServer::start_measured(&arguments);
    let mut socket = server.client();
    let grown = growth(&server, || {
        for message in frames {
            let closes = message.len() > cap;
            send_over(&mut socket, message, closes);
            if closes {
                socket = server.client();
            }
        }
        socket.send(&request("probe", "permissionProfile/list", json!({})));
        while socket.receive()["id"] != "probe" {}
    });
    server.stop();
    grown
}

fn send_over(socket: &mut Websocket, message: &[u8], closes: bool) {
    let bytes = frame(FIN | TEXT, message);
    if !closes {
        return socket.raw(&bytes);
    }
    socket.push(&bytes, crate::support::TEST_TIMEOUT);
    loop {
        match socket.next() {
            WebsocketEvent::Message(_) => {}
            WebsocketEvent::Close { code, .. } => return assert_eq!(code, 1009),
            WebsocketEvent::End => panic!("ended without a close"),
        }
    }
}

/// Many frames at a small cap, just under it and over it.
fn many(cap: usize) -> Vec<Vec<u8>> {
    let mut all = large_frames(cap - 64);
    all.extend(large_lists(cap));
    all.extend(large_frames(cap + 1).into_iter().take(3));
    all.extend(large_frames(5 * cap).into_iter().take(2));
    all
}

#[test]
fn many_large_frames_over_stdio() {
    let kinds = many(MIB);
    let frames: Vec<&[u8]> = kinds.iter().map(Vec::as_slice).cycle().take(120).collect();
    check("stdio, 120 frames", over_stdio(&frames, MIB), MIB);
}

#[test]
fn many_large_frames_over_a_websocket() {
    let kinds = many(MIB);
    let frames: Vec<&[u8]> = kinds.iter().map(Vec::as_slice).cycle().take(120).collect();
    check("ws, 120 frames", over_websocket(&frames, MIB), MIB);
}

/// The largest accepted lists must cost no more than rejected ones.
#[test]
fn lists_as_long_as_they_may_be() {
    for (number, list) in longest_lists().iter().enumerate() {
        let grown = over_stdio(&[list], 32 * MIB);
        check(&format!("stdio, longest list {number}"), grown, 32 * MIB);
    }
}

#[test]
fn frames_of_31_mib_over_stdio() {
    // The code behind the transports is the same, so the lists go over one only.
    let kinds = [large_frames(31 * MIB), large_lists(31 * MIB)].concat();
    for (number, large) in kinds.iter().enumerate() {
        let grown = over_stdio(&[large], 32 * MIB);
        check(&format!("stdio, 31 MiB frame {number}"), grown, 32 * MIB);
    }
}

#[test]
fn frames_of_31_mib_over_a_websocket() {
    for (number, large) in large_frames(31 * MIB).iter().enumerate() {
        let grown = over_websocket(&[large], 32 * MIB);
        check(&format!("ws, 31 MiB frame {number}"), grown, 32 * MIB);
    }
}

/// Lines that arrive faster than they are read wait in the pipe, not in the server.
#[test]
fn frames_of_31_mib_one_after_the_other() {
    let kinds = large_frames(31 * MIB);
    let frames: Vec<&[u8]> = kinds.iter().map(Vec::as_slice).collect();
    check(
        "stdio, 31 MiB frames",
        over_stdio(&frames, 32 * MIB),
        32 * MIB,
    );
}
