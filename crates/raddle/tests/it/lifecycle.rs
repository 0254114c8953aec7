//! From start to end: requests are answered, running work is finished, and no client keeps the
//! server from serving the others.

mod descriptors;
mod parent;
mod slow_sockets;

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::config_lock::ConfigWriteLock;
use crate::support::server::{TestServer, command};
use crate::support::stdio::Pipes;
use crate::support::websocket::{Websocket, WebsocketEvent};
use crate::support::{code, eventually, initialize, request};

/// Sends a request that blocks. When this returns, it is running.
fn send_slow(client: &mut Websocket) {
    client.send(&ConfigWriteLock::request("slow"));
    let answer = client.ask(&request("quick", "account/read", json!({})));
    assert_eq!(answer["id"], "quick");
}

fn closes(mut socket: Websocket, expected: u16) {
    match socket.next() {
        WebsocketEvent::Close { code, .. } => assert_eq!(code, expected),
        other => panic!("expected close {expected}, got {other:?}"),
    }
    socket.end();
}

/// The limit for "at once": draining takes up to 30 s.
const AT_ONCE: Duration = Duration::from_secs(10);

#[test]
fn the_end_of_stdin_ends_the_server_when_all_is_answered() {
    let mut server = TestServer::start(&[]);
    let mut pipes = server.pipes();
    pipes.hello();
    let slow = ConfigWriteLock::new(server.home());
    pipes.send(&ConfigWriteLock::request("slow"));
    for id in 0..100 {
        pipes.send(&request(id, "account/read", json!({})));
    }
    // The last line lacks its line end.
    pipes.raw(&request(100, "fs/getMetadata", json!({ "path": "/" })));
    pipes.close();

    let mut quick: Vec<Value> = (0..101).map(|_| pipes.receive()).collect();
    assert!(
        quick.iter().all(|answer| code(answer).is_none()),
        "{quick:?}"
    );
    let mut ids: Vec<_> = quick
        .drain(..)
        .map(|answer| answer["id"].as_i64())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..101).map(Some).collect::<Vec<_>>());

    drop(slow);
    let slow = pipes.receive();
    assert_eq!(slow["id"], "slow");
    ConfigWriteLock::check(&slow);
    assert_eq!(pipes.next(), None);
    assert_eq!(server.ended().status.code(), Some(0));
}

#[test]
fn a_silent_parent_is_no_failure() {
    let mut server = TestServer::start(&[]);
    let mut pipes = server.pipes();
    pipes.close();
    assert_eq!(pipes.next(), None);
    assert_eq!(server.ended().status.code(), Some(0));
}

#[test]
fn a_signal_drains() {
    let server = TestServer::open_websocket(&["--listen", "unix://"]);
    let address = server.address();
    let (mut busy, idle) = (server.client(), server.unix_client());
    let slow = ConfigWriteLock::new(server.home());
    send_slow(&mut busy);
    server.terminate();
    server.wait_for("draining");

    // Idle clients are disconnected at once, and new ones are rejected.
    closes(idle, 1001);
    eventually("the listener to be closed", || {
        TcpStream::connect(address).err()
    });
    assert!(!server.socket().exists());

    drop(slow);
    ConfigWriteLock::check(&busy.receive());
    closes(busy, 1001);
    assert_eq!(server.ended().status.code(), Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    let slow = ConfigWriteLock::new(server.home());
    send_slow(&mut client);
    server.terminate();
    server.wait_for("draining");
    let begun = Instant::now();
    server.terminate();
    let ended = server.ended();
    // The request is still running, and would get half a minute.
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.log.iter().any(|line| line.contains("second signal")));
    drop(slow);
}

#[test]
fn several_listeners_at_once() {
    let mut server = TestServer::open_websocket(&["--listen", "unix://", "--listen", "stdio://"]);
    let mut pipes = server.pipes();
    pipes.hello();
    let (mut websocket, mut unix) = (server.client(), server.unix_client());
    let ask = request(1, "model/list", json!({}));
    let answer = pipes.ask(&ask);
    assert_eq!(code(&answer), None);
    assert_eq!(websocket.ask(&ask), answer);
    assert_eq!(unix.ask(&ask), answer);

    // The end of the parent ends the server for all clients.
    pipes.close();
    closes(websocket, 1001);
    closes(unix, 1001);
    assert_eq!(pipes.next(), None);
    let ended = server.ended();
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(ended.connections(), 3);
}

#[test]
fn without_a_listener_no_client_connects() {
    let mut server = TestServer::start(&["--listen", "off"]);
    let status = format!("/proc/{}/status", server.pid());
    // Signal 15 is the fifteenth bit of the mask of caught signals.
    eventually("the server to watch for SIGTERM", || {
        let status = std::fs::read_to_string(&status).ok()?;
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))?;
        let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
        (mask & 1 << 14 != 0).then_some(())
    });
    let mut pipes = server.pipes();
    pipes.send(&request(1, "model/list", json!({})));
    let ended = server.stop();
    assert_eq!(pipes.next(), None, "stdin is not read");
    assert_eq!(ended.connections(), 0);
    assert!(
        !ended.log.iter().any(|line| line.contains("listening")),
        "{:?}",
        ended.log
    );
}

#[test]
fn stdout_carries_only_the_protocol() {
    for format in ["json", "text"] {
        let home = tempfile::tempdir().expect("a home");
        let mut command = command(home.path());
        command
            .env("RADDLE_LOG", "trace")
            .env("RADDLE_LOG_FORMAT", format);
        let mut child = command
            .arg("app-server")
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("stdin");
        let lines: &[&str] = &[
            "",
            "garbage",
            "[]",
            "{}",
            r#"{"id":null,"method":"x"}"#,
            r#"{"id":1,"method":"x"}"#,
        ];
        let all = lines.join("\n");
        stdin.write_all(all.as_bytes()).expect("the server reads");
        drop(stdin);
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success());
        let stdout = String::from_utf8(output.stdout).expect("text");
        let messages: Vec<Value> = stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect("a message"))
            .collect();
        assert_eq!(messages.len(), 2, "{stdout}");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(stderr.contains("frame dropped"), "{stderr}");
        let is_json = |line: &str| serde_json::from_str::<Value>(line).is_ok();
        assert_eq!(stderr.lines().all(is_json), format == "json", "{stderr}");
    }
}

#[test]
fn dropped_messages_are_counted_in_the_log() {
    let warnings = |lines: &[&str]| {
        let home = tempfile::tempdir().expect("a home");
        // With the default log levels.
        let mut child = command(home.path())
            .arg("app-server")
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("stdin");
        let all = lines.join("\n");
        stdin.write_all(all.as_bytes()).expect("the server reads");
        drop(stdin);
        let output = child.wait_with_output().expect("an end");
        let stderr = String::from_utf8(output.stderr).expect("text");
        let counts = stderr.lines().filter(|line| line.contains("dropped"));
        counts.map(str::to_owned).collect::<Vec<_>>()
    };
    let hello = String::from_utf8(initialize(1)).expect("text");
    let bad_id = r#"{"id":null,"method":"x"}"#;
    assert_eq!(warnings(&[&hello]), Vec::<String>::new());
    let warning_lines = warnings(&["garbage", "[]", &hello, bad_id]);
    assert_eq!(warning_lines.len(), 1, "{warning_lines:?}");
    let event: Value = serde_json::from_str(&warning_lines[0]).expect("JSON");
    assert_eq!(event["level"], "WARN");
    let count = |what: &str| event["fields"][what].as_u64();
    let counts = ["requests", "refused", "dropped", "too_long"].map(count);
    assert_eq!(counts, [1, 1, 2, 0].map(Some));
}

#[test]
fn settings_count_wherever_they_stand() {
    let read = |arguments: &[&str]| {
        let home = tempfile::tempdir().expect("a home");
        let mut child = command(home.path())
            .args(arguments)
            .spawn()
            .expect("the binary starts");
        let mut pipes = Pipes::of(&mut child);
        pipes.hello();
        let answer = pipes.ask(&request(1, "config/read", json!({})));
        pipes.close();
        assert!(child.wait().expect("an end").success());
        answer["result"]["config"].clone()
    };
    let before = read(&["-c", "model=one", "-c", "tui.b=1", "app-server"]);
    assert_eq!(
        (&before["model"], &before["tui"]["b"]),
        (&json!("one"), &json!(1))
    );
    let after = read(&["app-server", "-c", "model=two"]);
    assert_eq!(after["model"], "two");
    // The last one wins.
    let both = read(&[
        "-c",
        "model=one",
        "-c",
        "tui.b=1",
        "app-server",
        "-c",
        "model=two",
        "-c",
        "tui.c=2",
    ]);
    assert_eq!(both["model"], "two");
    assert_eq!(both["tui"], json!({ "b": 1, "c": 2 }));
}

#[test]
fn a_bad_setting_ends_the_start_with_a_reason() {
    for arguments in [
        ["-c", "nonsense", "app-server"],
        ["app-server", "-c", "nonsense"],
    ] {
        let home = tempfile::tempdir().expect("a home");
        let output = command(home.path())
            .args(arguments)
            .output()
            .expect("the binary starts");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("has no `=`"), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}
