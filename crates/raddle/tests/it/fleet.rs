//! A server whose threads are in PostgreSQL, and the commands beside it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use ::support::StdioServer;
use raddle_core::ThreadId;

use crate::support::TEST_TIMEOUT;
use crate::support::http;
use crate::support::server::{TestServer, command};
use crate::support::websocket::Websocket;

/// The PostgreSQL server that tests share.
#[path = "../../../raddle-store/tests/fleet/server.rs"]
#[expect(dead_code, reason = "the tests of the store use the rest")]
mod database;

/// Makes a home with a schema of its own.
fn home() -> TempDir {
    let home = TempDir::new().expect("a home");
    let id = ThreadId::mint().to_string().to_lowercase();
    let schema: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    let address = database::shared();
    let config =
        format!("model = 'mock/mock'\n[store]\naddress = \"{address}\"\nschema = 't{schema}'\n");
    fs::write(home.path().join("config.toml"), config).expect("written");
    home
}

fn start(home: &Path, log: &Path) -> StdioServer {
    let mut command = command(home);
    command.args(["app-server", "--recovery", "continue"]);
    let mut server = StdioServer::start(command, log).expect("a server");
    let params = json!({"clientInfo": {"name": "it", "version": "0"}});
    server.call("initialize", &params).expect("a result");
    server
}

/// Runs a turn, and returns once it is completed.
fn turn(server: &mut StdioServer, thread: &Value, text: &str) {
    let input = json!([{"type": "text", "text": text}]);
    let params = json!({"threadId": thread, "input": input});
    server.call("turn/start", &params).expect("a turn");
    wait_for(server, "turn/completed", |it| {
        assert_eq!(it["turn"]["status"], "completed", "{it}");
        true
    });
}

/// Waits for a notification or a request, and returns its params.
fn wait_for(
    server: &mut StdioServer,
    method: &str,
    is_it: impl Fn(&Value) -> bool,
) -> (Value, Value) {
    let end = Instant::now() + TEST_TIMEOUT;
    loop {
        let message = server.next(end).expect("the server runs");
        let message = message.expect("a message in time");
        if message["method"] == method && is_it(&message["params"]) {
            return (message["id"].clone(), message["params"].clone());
        }
    }
}

fn run(home: &Path, words: &[&str]) -> Output {
    command(home).args(words).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn threads_outlive_a_killed_server_without_a_file_in_its_home() {
    let (home, elsewhere) = (home(), TempDir::new().expect("a folder"));
    let log = elsewhere.path().join("log");
    let mut server = start(home.path(), &log);
    let started = server.call("thread/start", &json!({"cwd": elsewhere.path()}));
    let thread = started.expect("a thread")["thread"]["id"].clone();
    turn(&mut server, &thread, "the first");
    // An approval is open, and half an answer was streamed, when the server is killed.
    let asking = r#"MOCK text n=20 gap_ms=1
MOCK call name=exec_command arguments={"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "why"}"#;
    let input = json!([{"type": "text", "text": asking}]);
    let params = json!({"threadId": thread, "input": input});
    server.call("turn/start", &params).expect("a turn");
    let request = "item/commandExecution/requestApproval";
    wait_for(&mut server, request, |_| true);
    server.kill().expect("killed");
    drop(server);

    let mut server = start(home.path(), &log);
    let list = server.call("thread/list", &json!({})).expect("a list");
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list["data"][0]["id"], thread);
    let resumed = server.call("thread/resume", &json!({"threadId": thread}));
    let turns = resumed.expect("a thread")["thread"]["turns"].clone();
    assert_eq!(turns.as_array().map(Vec::len), Some(2), "{turns}");
    let (id, _) = wait_for(&mut server, request, |_| true);
    let response = json!({"id": id, "result": {"decision": "decline"}});
    server.send(&response).expect("sent");
    wait_for(&mut server, "turn/completed", |_| true);
    turn(&mut server, &thread, "the last");
    let read = server.call(
        "thread/read",
        &json!({"threadId": thread, "includeTurns": true}),
    );
    let read = read.expect("a thread");
    // Clients take a thread without a path for an ephemeral one.
    assert!(read["thread"]["path"].is_string(), "{read}");
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(3));
    server.end().expect("a successful exit");
    let names = fs::read_dir(home.path().join("threads")).expect("a folder");
    let names: Vec<_> = names.map(|it| it.expect("an entry").file_name()).collect();
    assert_eq!(names, ["nodes"], "only the locks of processes");
}

#[test]
fn commands_for_operators_create_and_examine_the_tables() {
    let home = home();
    let states = || {
        let output = run(home.path(), &["fleet", "check", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let parts = report["parts"].as_array().expect("parts").clone();
        let state = |name: &str| {
            let part = parts.iter().find(|it| it["part"] == name);
            part.expect(name)["state"].clone()
        };
        (output.status.code(), state("tables"), state("standby"))
    };
    // A single server has no standby.
    assert_eq!(states(), (Some(0), json!("warning"), json!("warning")));
    let migrated = run(home.path(), &["fleet", "migrate"]);
    assert_eq!(migrated.status.code(), Some(1));
    assert!(text(&migrated.stderr).contains("raddle fleet init"));
    for expected in ["created the tables", "already"] {
        let made = run(home.path(), &["fleet", "init"]);
        assert!(made.status.success(), "{made:?}");
        assert!(text(&made.stderr).contains(expected), "{made:?}");
    }
    assert_eq!(states(), (Some(0), json!("ok"), json!("warning")));
    let status = run(home.path(), &["fleet", "status"]);
    let shown = text(&status.stdout);
    assert!(shown.contains("server    PostgreSQL 15"), "{shown}");
    assert!(shown.contains("commits wait for none"), "{shown}");
}

/// Returns a page of a server, with its status.
fn page(server: &TestServer, path: &str) -> (u16, Value) {
    let address = server.address();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let response = http::send(address, &request);
    let body = serde_json::from_str(&response.body).expect("JSON");
    (response.status, body)
}

#[test]
fn a_server_is_not_ready_while_its_database_is_away_and_is_not_restarted_for_it() {
    let database = database::OwnServer::new();
    let setting = format!("store.address='{}'", database.address());
    let server = TestServer::open_websocket(&["-c", &setting]);
    let ready = json!({"status": "ready", "store": "ok", "durability": "relaxed"});
    assert_eq!(page(&server, "/readyz"), (200, ready));
    let mut client = Websocket::connect(server.address());
    let params = json!({"clientInfo": {"name": "it", "version": "0"}});
    let initialize = json!({"id": 1, "method": "initialize", "params": params});
    let initialized = client.ask(initialize.to_string().as_bytes());
    assert_eq!(initialized["result"]["raddle"]["durability"], "relaxed");
    drop(database);
    let end = Instant::now() + TEST_TIMEOUT;
    // The result of the last check is cached for a second.
    while page(&server, "/readyz").0 == 200 {
        assert!(Instant::now() < end);
    }
    let away = json!({"status": "notReady", "store": "unavailable", "durability": "relaxed"});
    assert_eq!(page(&server, "/readyz"), (503, away));
    let live = json!({"status": "ok", "parts": {"loop": "ok"}});
    assert_eq!(page(&server, "/livez"), (200, live));
}

#[test]
fn commands_read_the_threads_of_the_database() {
    let (home, elsewhere) = (home(), TempDir::new().expect("a folder"));
    let mut server = start(home.path(), &elsewhere.path().join("log"));
    let started = server.call("thread/start", &json!({"cwd": elsewhere.path()}));
    let thread = started.expect("a thread")["thread"]["id"].clone();
    turn(&mut server, &thread, "a needle");
    server.end().expect("a successful exit");
    let id = thread.as_str().expect("an id");
    let output = |words: &[&str]| {
        let output = run(home.path(), words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output.stdout)
    };
    for words in [
        &["thread", "list"][..],
        &["thread", "list", "--search", "needle"],
        &["thread", "show", id],
        &["thread", "verify"],
        &["thread", "verify", id],
    ] {
        let shown = output(words);
        assert!(shown.contains(id), "{words:?}: {shown}");
    }
    assert!(output(&["thread", "show", id]).contains("a needle"));
    assert_eq!(output(&["thread", "list", "--search", "hay stack"]), "");
    let file = elsewhere.path().join("thread.jsonl");
    let file = file.to_str().expect("text");
    output(&["thread", "export", id, "--out", file]);
    let copy = output(&["thread", "import", "--as-new", file]);
    assert!(output(&["thread", "list"]).contains(copy.trim()));
    // The file goes to a home too.
    let laptop = TempDir::new().expect("a home");
    let imported = run(laptop.path(), &["thread", "import", file]);
    assert!(imported.status.success(), "{imported:?}");
    let shown = run(laptop.path(), &["thread", "show", id]);
    assert!(text(&shown.stdout).contains("a needle"), "{shown:?}");
    for (words, expected) in [
        (&["thread", "show", &id[..8]][..], "is not the whole id"),
        (&["thread", "delete", id, "--yes"], "a client of a server"),
    ] {
        let refused = run(home.path(), words);
        assert_eq!(refused.status.code(), Some(1), "{words:?}");
        let message = text(&refused.stderr);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn commands_about_the_home_do_not_pretend_that_there_are_no_threads() {
    let home = home();
    let collected = run(home.path(), &["gc"]);
    assert!(collected.status.success(), "{collected:?}");
    let report = run(home.path(), &["doctor", "--json"]).stdout;
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let parts = report["parts"].as_array().expect("parts");
    let threads = parts.iter().find(|it| it["part"] == "threads");
    let message = threads.expect("a part")["message"].as_str();
    assert!(message.is_some_and(|it| it.contains("raddle fleet check")));
}

/// Runs a program of PostgreSQL.
fn postgres(program: &str, arguments: &[&str]) {
    let path = Path::new("/usr/lib/postgresql/15/bin").join(program);
    let output = Command::new(path).args(arguments).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{program}: {output:?}");
}

/// The drill of docs/fleet.md: a dump of the database, restored on another server.
#[test]
fn a_restored_database_has_whole_threads() {
    let elsewhere = TempDir::new().expect("a folder");
    let (lost, restored) = (database::OwnServer::new(), database::OwnServer::new());
    let home = |server: &database::OwnServer| {
        let home = TempDir::new().expect("a home");
        let address = server.address();
        let config = format!("model = 'mock/mock'\n[store]\naddress = \"{address}\"\n");
        fs::write(home.path().join("config.toml"), config).expect("written");
        home
    };
    let first = home(&lost);
    let mut server = start(first.path(), &elsewhere.path().join("log"));
    let started = server.call("thread/start", &json!({"cwd": elsewhere.path()}));
    let thread = started.expect("a thread")["thread"]["id"].clone();
    turn(&mut server, &thread, "before the backup");
    // The server runs on during the backup.
    let dump = elsewhere.path().join("dump");
    let dump = dump.to_str().expect("text");
    let words = ["--format=custom", "--schema=raddle", "--file", dump];
    postgres(
        "pg_dump",
        &[&words[..], &["--dbname", &lost.address()]].concat(),
    );
    server.kill().expect("killed");
    drop(server);
    drop(lost);

    let address = restored.address();
    postgres(
        "pg_restore",
        &["--exit-on-error", "--dbname", &address, dump],
    );
    let second = home(&restored);
    let verified = run(second.path(), &["thread", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
    let shown = text(&verified.stdout);
    assert!(shown.contains("whole"), "{shown}");
    let mut server = start(second.path(), &elsewhere.path().join("log"));
    let resumed = server.call("thread/resume", &json!({"threadId": thread}));
    let turns = resumed.expect("a thread")["thread"]["turns"].clone();
    assert_eq!(turns.as_array().map(Vec::len), Some(1), "{turns}");
    turn(&mut server, &thread, "after it");
    server.end().expect("a successful exit");
}

#[test]
fn a_server_refuses_a_store_that_it_cannot_use() {
    for (store, expected) in [
        ("[store]\n", "neither `store.address`"),
        ("[store]\naddress_env = 'RADDLE_NONE'\n", "RADDLE_NONE"),
    ] {
        let home = TempDir::new().expect("a home");
        fs::write(home.path().join("config.toml"), store).expect("written");
        let output = run(home.path(), &["app-server"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("RUST_BACKTRACE"), "{message}");
    }
}

#[test]
fn a_thread_moves_from_a_home_to_the_database_and_back() {
    let (home, elsewhere) = (home(), TempDir::new().expect("a folder"));
    let config = fs::read_to_string(home.path().join("config.toml")).expect("a file");
    let laptop = TempDir::new().expect("a home");
    fs::write(laptop.path().join("config.toml"), "model = 'mock/mock'\n").expect("written");
    let log = elsewhere.path().join("log");
    let mut server = start(laptop.path(), &log);
    let started = server.call("thread/start", &json!({"cwd": elsewhere.path()}));
    let thread = started.expect("a thread")["thread"]["id"].clone();
    turn(&mut server, &thread, "the first");
    let id = thread.as_str().expect("an id");
    let table: toml::Table = config.parse().expect("TOML");
    let text = |key: &str| table["store"][key].as_str().expect(key).to_owned();
    let (address, schema) = (text("address"), text("schema"));
    let words = ["thread", "move", id, "--to", &address, "--schema", &schema];
    let refused = run(laptop.path(), &words);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(self::text(&refused.stderr).contains("a running server has it"));
    server.end().expect("a successful exit");
    let moved = run(laptop.path(), &words);
    assert!(moved.status.success(), "{moved:?}");
    let list = run(laptop.path(), &["thread", "list", "--json"]).stdout;
    assert!(!self::text(&list).contains(id));

    let mut server = start(home.path(), &log);
    let params = json!({"threadId": thread});
    server.call("thread/resume", &params).expect("a thread");
    turn(&mut server, &thread, "the second");
    server.end().expect("a successful exit");
    let to = laptop.path().to_str().expect("text");
    let back = run(home.path(), &["thread", "move", "--all", "--to", to]);
    assert!(back.status.success(), "{back:?}");
    assert!(self::text(&back.stdout).starts_with(id), "{back:?}");
    let shown = run(laptop.path(), &["thread", "show", id]);
    let shown = self::text(&shown.stdout);
    assert!(shown.contains("the second"), "{shown}");
    let verified = run(laptop.path(), &["thread", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}
