//! Processes of other versions on one home are rejected, and nothing is damaged. There is one
//! version to run, so the test simulates the other: it changes the layout marks of the journal, and
//! sends the other's greeting.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::request;
use crate::support::server::{TestServer, command};
use crate::support::websocket::Websocket;

fn start() -> (TestServer, Websocket) {
    let server = TestServer::start(&["--listen", "unix://"]);
    let client = server.unix_client();
    (server, client)
}

/// Sends a request and returns its result or error. Skips notifications.
fn ask(client: &mut Websocket, method: &str, params: Value) -> Result<Value, Value> {
    client.send(&request(method, method, params));
    loop {
        let mut message = client.receive();
        if message["id"] == method {
            return match message["error"].take() {
                Value::Null => Ok(message["result"].take()),
                error => Err(error),
            };
        }
    }
}

fn start_thread(client: &mut Websocket) -> Value {
    let started = ask(client, "thread/start", json!({})).expect("a thread");
    started["thread"]["id"].clone()
}

/// Shifts the layout marks of a journal.
fn move_layout(home: &Path, by: i64) {
    let file = raddle_store::Options {
        folder: home.join("threads"),
    }
    .file();
    let journal = Connection::open(file).expect("a journal");
    for mark in ["user_version", "application_id"] {
        let get = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let now = journal
            .pragma_query_value(None, mark, get)
            .expect("a number");
        journal
            .pragma_update(None, mark, now + by)
            .expect("it is set");
    }
}

#[test]
fn a_home_migrated_by_a_newer_version_is_rejected_and_unchanged() {
    let (mut server, mut client) = start();
    let thread = start_thread(&mut client);
    move_layout(server.home(), 100);

    // In the process that has the thread,
    let params = json!({"threadId": thread, "name": "not kept"});
    let refused = ask(&mut client, "thread/name/set", params).expect_err("a refusal");
    assert!(refused["code"].is_i64(), "{refused}");

    // and in one that starts later.
    server.start_again(&["--listen", "unix://"]);
    let mut client = server.unix_client();
    for (method, params) in [
        ("thread/list", json!({})),
        ("thread/resume", json!({"threadId": thread})),
        ("thread/start", json!({})),
    ] {
        let refused = ask(&mut client, method, params).expect_err("a refusal");
        let message = refused["message"].as_str().expect("a text");
        assert!(message.contains("upgrade"), "{method}: {refused}");
    }

    move_layout(server.home(), -100);
    server.start_again(&["--listen", "unix://"]);
    let mut client = server.unix_client();
    let resumed = ask(&mut client, "thread/resume", json!({"threadId": thread})).expect("a thread");
    assert_eq!(resumed["thread"]["name"], Value::Null);
    let home = server.home().to_owned();
    let verified = command(&home)
        .args(["thread", "verify"])
        .output()
        .expect("it runs");
    assert!(verified.status.success(), "{verified:?}");
}

/// The lock of the only process that has used the home so far.
fn lock_of_the_first(home: &Path) -> PathBuf {
    let nodes = fs::read_dir(home.join("threads/nodes")).expect("a folder");
    let mut locks = nodes.map(|it| it.expect("an entry").path());
    let lock = locks.find(|it| it.extension().is_some_and(|it| it == "lock"));
    lock.expect("a lock")
}

#[test]
fn a_peer_of_another_version_is_named_and_keeps_its_threads() {
    let (mut server, mut client) = start();
    let thread = start_thread(&mut client);
    let lock = lock_of_the_first(server.home());
    server.start_again(&["--listen", "unix://"]);

    // From here on this test plays the process that has the thread, with another version.
    let alive = File::open(&lock).expect("the lock of a dead process");
    alive.lock().expect("nobody has it");
    let socket = lock.with_extension("sock");
    fs::remove_file(&socket).expect("what the dead process left");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let greeting = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("someone comes");
        let mut hello = String::new();
        let mut lines = BufReader::new(stream.try_clone().expect("a stream"));
        lines.read_line(&mut hello).expect("a greeting");
        let welcome = json!({"relay": 2, "version": "9.9.9", "refused": null, "more": {}});
        writeln!(stream, "{welcome}").expect("it listens");
        serde_json::from_str::<Value>(&hello).expect("JSON")
    });

    let mut client = server.unix_client();
    let params = json!({"threadId": thread});
    let refused = ask(&mut client, "thread/resume", params.clone()).expect_err("a refusal");
    assert_eq!(refused["code"], -32600, "{refused}");
    assert_eq!(refused["data"]["errorInfo"], "owned_elsewhere", "{refused}");
    let message = refused["message"].as_str().expect("a text");
    assert!(
        message.contains("9.9.9") && message.contains("use the same version"),
        "{message}"
    );
    assert_eq!(greeting.join().expect("no panic")["relay"], 1);
    let read = ask(&mut client, "thread/read", params.clone()).expect("a look");
    assert_eq!(read["thread"]["id"], thread);

    // The other version connects to us, and is rejected as well.
    let own_socket = other_socket(&socket);
    let mut stream = UnixStream::connect(own_socket).expect("someone there");
    writeln!(
        stream,
        "{}",
        json!({"relay": 2, "version": "9.9.9", "principal": null})
    )
    .expect("it listens");
    let mut line = String::new();
    stream.read_to_string(&mut line).expect("an answer");
    let welcome: Value = serde_json::from_str(&line).expect("JSON");
    assert!(welcome["refused"].is_string(), "{welcome}");

    // After its end any process can take over its threads.
    drop(alive);
    ask(&mut client, "thread/resume", params).expect("a thread");
}

/// The socket of the only other process.
fn other_socket(other: &Path) -> PathBuf {
    let nodes = fs::read_dir(other.parent().expect("a folder")).expect("a folder");
    let mut paths = nodes.map(|it| it.expect("an entry").path());
    let is_socket = |it: &PathBuf| it.extension().is_some_and(|it| it == "sock") && it != other;
    paths.find(is_socket).expect("a socket")
}
