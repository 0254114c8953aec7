//! Processes of other versions on one home are refused, and nothing is damaged. There is one version to run, so
//! the other one is played: its mark on the journal is set, and its greeting is spoken by this process.

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

/// Asks, and passes over what is told meanwhile.
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

/// Moves the marks by which a journal says what layout it has.
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
fn a_home_that_a_newer_version_brought_up_to_date_is_refused_and_left_as_it_is() {
    let (mut server, mut client) = start();
    let thread = start_thread(&mut client);
    move_layout(server.home(), 100);

    // By the process that has the thread,
    let params = json!({"threadId": thread, "name": "not kept"});
    let refused = ask(&mut client, "thread/name/set", params).expect_err("a refusal");
    assert!(refused["code"].is_i64(), "{refused}");

    // and by one that comes later.
    server.start_again(&["--listen", "unix://"]);
    let mut client = server.unix_client();
    for (method, params) in [
        ("thread/list", json!({})),
        ("thread/resume", json!({"threadId": thread})),
        ("thread/start", json!({})),
    ] {
        let refused = ask(&mut client, method, params).expect_err("a refusal");
        let says = refused["message"].as_str().expect("a text");
        assert!(says.contains("upgrade"), "{method}: {refused}");
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

/// The lock of the one process that has used the home so far.
fn lock_of_the_first(home: &Path) -> PathBuf {
    let nodes = fs::read_dir(home.join("threads/nodes")).expect("a folder");
    let mut locks = nodes.map(|it| it.expect("an entry").path());
    let lock = locks.find(|it| it.extension().is_some_and(|it| it == "lock"));
    lock.expect("a lock")
}

#[test]
fn a_process_of_the_home_that_speaks_other_words_is_named_and_keeps_its_threads() {
    let (mut server, mut client) = start();
    let thread = start_thread(&mut client);
    let lock = lock_of_the_first(server.home());
    server.start_again(&["--listen", "unix://"]);

    // From here on this is the process that has the thread, and it is of another version.
    let alive = File::open(&lock).expect("the lock of a dead process");
    alive.lock().expect("nobody has it");
    let door = lock.with_extension("sock");
    fs::remove_file(&door).expect("what the dead process left");
    let listener = UnixListener::bind(&door).expect("a door");
    let greeted = thread::spawn(move || {
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
    let says = refused["message"].as_str().expect("a text");
    assert!(
        says.contains("9.9.9") && says.contains("use the same version"),
        "{says}"
    );
    assert_eq!(greeted.join().expect("no panic")["relay"], 1);
    let read = ask(&mut client, "thread/read", params.clone()).expect("a look");
    assert_eq!(read["thread"]["id"], thread);

    // It comes the other way, and is refused as well.
    let own = door_beside(&door);
    let mut stream = UnixStream::connect(own).expect("someone there");
    writeln!(
        stream,
        "{}",
        json!({"relay": 2, "version": "9.9.9", "principal": null})
    )
    .expect("it listens");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("an answer");
    let welcome: Value = serde_json::from_str(&said).expect("JSON");
    assert!(welcome["refused"].is_string(), "{welcome}");

    // When it has left, its threads are for everyone.
    drop(alive);
    ask(&mut client, "thread/resume", params).expect("a thread");
}

/// The door of the only process beside the one that has this door.
fn door_beside(other: &Path) -> PathBuf {
    let nodes = fs::read_dir(other.parent().expect("a folder")).expect("a folder");
    let mut paths = nodes.map(|it| it.expect("an entry").path());
    let is_door = |it: &PathBuf| it.extension().is_some_and(|it| it == "sock") && it != other;
    paths.find(is_door).expect("a door")
}
