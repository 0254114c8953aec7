//! Homes that older versions wrote. This version must open, read and continue them.
//!
//! Each folder of `homes/` has a home, `home.tar.gz`, and `expected.json`, its threads as the
//! version that wrote it showed them. `cargo xtask home-fixture` writes both.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use ::support::{MockModel, StdioServer};

use crate::support::TEST_TIMEOUT;
use crate::support::server::command;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/homes");

/// Path of the home when it was written, and the address of its model. The configuration has both.
const OLD_HOME: &str = "/tmp/raddle-home";
const OLD_MODEL: &str = "http://127.0.0.1:4010/v1";

#[test]
fn homes_of_older_versions_are_opened_read_and_continued() {
    let entries = fs::read_dir(FIXTURES).expect("the folder of fixtures");
    let paths = entries.map(|it| it.expect("an entry").path());
    let fixtures: BTreeSet<PathBuf> = paths.filter(|it| it.is_dir()).collect();
    assert!(!fixtures.is_empty(), "{FIXTURES} has no home");
    for fixture in fixtures {
        check(&fixture);
    }
}

fn check(fixture: &Path) {
    let expected = fs::read_to_string(fixture.join("expected.json")).expect("a file");
    let expected: Value = serde_json::from_str(&expected).expect("JSON");
    let elsewhere = TempDir::new().expect("a folder");
    let raddle = Path::new(env!("CARGO_BIN_EXE_raddle"));
    let mock = MockModel::start(raddle, elsewhere.path()).expect("a model");
    let home = unpack(fixture, mock.address());
    let mut server = start(home.path(), &elsewhere.path().join("log"));

    check_threads(&mut server, &expected);
    check_approval(&mut server, &expected["asking"]);
    for thread in expected["threads"].as_array().expect("threads") {
        if thread["archived"] == true {
            call(&mut server, "thread/unarchive", &thread["id"], json!({}));
        }
        call(&mut server, "thread/resume", &thread["id"], json!({}));
        continue_thread(&mut server, &thread["id"]);
    }
    continue_thread(&mut server, &expected["asking"]["thread"]);
    server.end().expect("a successful exit");
    check_commands(home.path());
}

/// Unpacks a home, and changes the paths and addresses of its configuration.
fn unpack(fixture: &Path, model: &str) -> TempDir {
    let home = TempDir::new().expect("a home");
    let status = Command::new("tar")
        .args(["--no-same-owner", "-xzf"])
        .arg(fixture.join("home.tar.gz"))
        .arg("-C")
        .arg(home.path())
        .status();
    assert!(status.expect("tar runs").success());
    let config = home.path().join("config.toml");
    let text = fs::read_to_string(&config).expect("a configuration");
    let path = home.path().to_str().expect("text");
    let text = text.replace(OLD_HOME, path).replace(OLD_MODEL, model);
    fs::write(config, text).expect("written");
    home
}

fn start(home: &Path, log: &Path) -> StdioServer {
    let mut command = command(home);
    // By default, a server on stdio interrupts the turn that was left.
    command.args(["app-server", "--recovery", "continue"]);
    let mut server = StdioServer::start(command, log).expect("a server");
    let params = json!({
        "clientInfo": {"name": "it", "version": "0"},
        "capabilities": {"experimentalApi": true},
    });
    server.call("initialize", &params).expect("a result");
    server
}

/// Sends a request about a thread, and returns its result.
fn call(server: &mut StdioServer, method: &str, thread: &Value, mut params: Value) -> Value {
    params["threadId"] = thread.clone();
    server.call(method, &params).expect("a result")
}

/// Checks that every thread is listed, and has the turns and items that it had.
fn check_threads(server: &mut StdioServer, expected: &Value) {
    let threads = expected["threads"].as_array().expect("threads");
    for is_archived in [false, true] {
        let of_kind = threads.iter().filter(|it| it["archived"] == is_archived);
        let mut ids: BTreeSet<&str> = of_kind.filter_map(|it| it["id"].as_str()).collect();
        if !is_archived {
            ids.extend(expected["asking"]["thread"].as_str());
        }
        let list = server.call("thread/list", &json!({"archived": is_archived}));
        let list = list.expect("a list");
        let listed = list["data"].as_array().expect("a page").iter();
        let listed: BTreeSet<&str> = listed.filter_map(|it| it["id"].as_str()).collect();
        assert_eq!(listed, ids, "archived: {is_archived}");
    }
    for thread in threads {
        let read = call(
            server,
            "thread/read",
            &thread["id"],
            json!({"includeTurns": true}),
        );
        assert_eq!(read["thread"]["name"], thread["name"], "{read}");
        check_members(&read["thread"]["turns"], &thread["turns"]);
    }
}

/// Checks that a value has every member that is expected. It may have others.
fn check_members(actual: &Value, expected: &Value) {
    match expected {
        Value::Array(expected) => {
            let items = actual.as_array().expect("a list");
            assert_eq!(items.len(), expected.len(), "{actual}");
            for (actual, expected) in items.iter().zip(expected) {
                check_members(actual, expected);
            }
        }
        Value::Object(members) => {
            for (name, expected) in members {
                // The text of a user is in its content.
                if name == "text" && actual["type"] == "userMessage" {
                    let content = actual["content"].as_array().expect("content");
                    let text = content.iter().filter_map(|it| it["text"].as_str());
                    assert_eq!(*expected, text.collect::<String>(), "{actual}");
                } else {
                    check_members(&actual[name], expected);
                }
            }
        }
        _ => assert_eq!(actual, expected),
    }
}

/// Checks that the approval request that was left open can be answered, and that the queued input
/// follows.
fn check_approval(server: &mut StdioServer, asking: &Value) {
    let thread = &asking["thread"];
    let queue = call(server, "thread/queue/list", thread, json!({}));
    let queued = &queue["data"][0]["input"][0]["text"];
    assert_eq!(*queued, asking["queued"], "{queue}");
    call(server, "thread/resume", thread, json!({}));
    let is_request = |it: &Value| it["method"] == "item/commandExecution/requestApproval";
    let request = wait_for(server, is_request);
    assert_eq!(request["params"]["turnId"], asking["turn"], "{request}");
    let response = json!({"id": request["id"], "result": {"decision": "decline"}});
    server.send(&response).expect("sent");
    let turn = wait_for_turn(server, thread);
    assert_eq!(turn["id"], asking["turn"], "{turn}");
    wait_for_turn(server, thread);
}

fn continue_thread(server: &mut StdioServer, thread: &Value) {
    let input = json!([{"type": "text", "text": "go on"}]);
    call(server, "turn/start", thread, json!({"input": input}));
    wait_for_turn(server, thread);
}

/// Returns the next turn of a thread that ends. It must be completed.
fn wait_for_turn(server: &mut StdioServer, thread: &Value) -> Value {
    let message = wait_for(server, |it| {
        it["method"] == "turn/completed" && it["params"]["threadId"] == *thread
    });
    let turn = message["params"]["turn"].clone();
    assert_eq!(turn["status"], "completed", "{turn}");
    turn
}

fn wait_for(server: &mut StdioServer, is_it: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + TEST_TIMEOUT;
    loop {
        let message = server.next(end).expect("the server runs");
        let message = message.expect("a message in time");
        if is_it(&message) {
            return message;
        }
    }
}

/// Checks the home with the commands that an operator would use.
fn check_commands(home: &Path) {
    let run = |words: &[&str]| command(home).args(words).output().expect("it runs");
    let verified = run(&["thread", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
    let report = run(&["doctor", "--json"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let parts = report["parts"].as_array().expect("parts");
    for name in ["threads", "rules", "config"] {
        let part = parts.iter().find(|it| it["part"] == name);
        let state = part.map(|it| &it["state"]);
        assert_eq!(state, Some(&json!("ok")), "{part:?}");
    }
}
