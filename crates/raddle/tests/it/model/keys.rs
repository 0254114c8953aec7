//! Keys, and models with a provider prefix.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MockClient, MockModel};
use crate::support::server::TestServer;

/// A mock that accepts one key only.
const LOCKED: &str = "access = { keys = ['sekret-2'] }";

/// Settings of a provider with a key command. It prints a new key each time, and `runs` has a byte
/// for each run.
fn by_command(folder: &TempDir) -> String {
    let runs = folder.path().join("runs");
    let runs = runs.display();
    let line = format!("printf x >> {runs}; printf 'sekret-%s' $(cat {runs} | wc -c)");
    format!("auth={{ command = '/bin/sh', args = ['-c', {line:?}], timeout_ms = 60000 }}")
}

fn runs(folder: &TempDir) -> usize {
    let runs = std::fs::read(folder.path().join("runs"));
    runs.map_or(0, |it| it.len())
}

#[test]
fn a_key_is_read_from_a_file_at_each_call() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("key");
    let setting = format!("key_file={}", file.display());
    let mut client = MockClient::start(LOCKED, &[&setting]);
    let (_, turn) = client.say("hello");
    let why = turn["error"]["message"].as_str().unwrap_or_default();
    let begins = format!("the key cannot be read from {}: ", file.display());
    assert!(why.starts_with(&begins), "{turn}");
    assert_eq!(turn["error"]["codexErrorInfo"], "unauthorized", "{turn}");
    for (key, status) in [("sekret-1", "failed"), ("sekret-2\n", "completed")] {
        std::fs::write(&file, key).expect("a key");
        let (_, turn) = client.say("hello");
        assert_eq!(turn["status"], status, "{turn}");
        assert!(!turn.to_string().contains("sekret-"), "{turn}");
    }
}

#[test]
fn a_rejected_key_is_fetched_again_once_for_all_threads() {
    let folder = TempDir::new().expect("a folder");
    let mut client = MockClient::start(LOCKED, &[&by_command(&folder)]);
    client.turns(8);
    assert_eq!(runs(&folder), 2);
    // The key is kept for the next turn.
    let (_, turn) = client.say("again");
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(runs(&folder), 2);
}

#[test]
fn a_rejection_stands_without_another_key() {
    let folder = TempDir::new().expect("a folder");
    let written = folder.path().join("written");
    let written = written.display();
    let line = format!("[ ! -e {written} ] || exit 3; printf sekret-1; printf x > {written}");
    let auth = format!("auth={{ command = '/bin/sh', args = ['-c', {line:?}] }}");
    let mut client = MockClient::start(LOCKED, &[&auth]);
    let (_, turn) = client.say("hello");
    let why = turn["error"]["message"].as_str().unwrap_or_default();
    assert!(
        why.starts_with("the model's vendor answered 401: "),
        "{turn}"
    );
    assert!(
        why.contains("; `/bin/sh` gave no key: it ended with 3 (check the key; "),
        "{turn}"
    );
    assert_eq!(turn["error"]["codexErrorInfo"], "unauthorized", "{turn}");
}

#[test]
fn a_failing_key_command_fails_the_turn_without_its_output() {
    for (line, timeout_ms, why) in [
        (
            "echo sekret >&2; exit 3",
            60_000,
            "`/bin/sh` gave no key: it ended with 3",
        ),
        (
            "true",
            60_000,
            "there is no key in what `/bin/sh` writes; put the key there",
        ),
        (
            "exec sleep 1000",
            300,
            "`/bin/sh` gave no key: it was not done after 300 ms; if it may take longer, raise timeout_ms",
        ),
    ] {
        let args = format!("['-c', '{line}']");
        let auth =
            format!("auth={{ command = '/bin/sh', args = {args}, timeout_ms = {timeout_ms} }}");
        let mut client = MockClient::start("", &[&auth]);
        let (_, turn) = client.say("hello");
        assert_eq!(turn["error"]["message"], why, "{turn}");
    }
}

#[test]
fn a_key_command_gets_only_configured_variables_and_starts_in_the_home() {
    for (named, is_seen) in [("", false), ("'RADDLE_LOG'", true)] {
        let folder = TempDir::new().expect("a folder");
        let environment_file = folder.path().join("seen");
        let line = format!("(pwd; env) > {}; echo k", environment_file.display());
        let auth = format!(
            "auth={{ command = 'sh', args = ['-c', '{line}'], env_vars = [{named}], timeout_ms = 60000 }}"
        );
        let mut client = MockClient::start("", &[&auth]);
        let (_, turn) = client.say("hello");
        assert_eq!(turn["status"], "completed", "{turn}");
        let environment = std::fs::read_to_string(environment_file).expect("what it saw");
        let mut lines = environment.lines();
        let home = client.server.home().display().to_string();
        assert_eq!(lines.next(), Some(home.as_str()));
        let has = |name: &str| environment.lines().any(|it| it.starts_with(name));
        assert!(has("PWD=") && !has("RADDLE_HOME="), "{environment}");
        assert_eq!(has("RADDLE_LOG="), is_seen, "{environment}");
    }
}

/// Creates a program that prints a key, and leaves a marker file beside itself.
fn write_program(file: &Path, key: &str) {
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
    let text = format!("#!/bin/sh\n: > '{}.ran'\necho {key}\n", file.display());
    std::fs::write(file, text).expect("it is written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(file, mode).expect("it is marked");
}

/// The workspace has a program of the same name as the operator's command, in a folder that `PATH`
/// lists first. The same through a link, and for a program that the command itself starts.
#[test]
fn a_key_command_is_never_run_from_the_workspace() {
    let folder = TempDir::new().expect("a folder");
    let own = folder.path().join("own");
    write_program(&own.join("give-key"), "sekret-2");
    for named in ["give-key", "sh"] {
        let mock = MockModel::start(LOCKED);
        let setting = match named {
            "sh" => "auth={ command = 'sh', args = ['-c', 'give-key'] }".to_owned(),
            _ => format!("auth={{ command = '{named}' }}"),
        };
        let arguments = mock.arguments(&[&setting]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // The link is made before the folder that it leads to, where the thread will work.
        let link = folder.path().join(format!("link-{named}"));
        let path = format!(
            "bin:{0}/bin:{0}:{1}:/usr/bin:/bin",
            link.display(),
            own.display()
        );
        let server = TestServer::start_with(&arguments, &[("PATH", &path)]);
        let work = server.home().join("work");
        std::os::unix::fs::symlink(&work, &link).expect("a link");
        let mut client = MockClient::at(mock, server);
        write_program(&work.join("bin/give-key"), "sekret-1");
        write_program(&work.join("give-key"), "sekret-1");
        let (_, turn) = client.say("hello");
        assert_eq!(turn["status"], "completed", "{named}: {turn}");
        for program in ["bin/give-key.ran", "give-key.ran"] {
            assert!(!work.join(program).exists(), "{named}: {program}");
        }
        assert!(own.join("give-key.ran").exists(), "{named}");
    }
}

/// Also by its path: a sandboxed command may write it.
#[test]
fn a_command_for_a_key_that_lies_in_the_workspace_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let program = folder.path().join("give-key");
    write_program(&program, "sekret-2");
    let auth = format!("auth={{ command = '{}' }}", program.display());
    let mut client = MockClient::start(LOCKED, &[&auth]);
    client.ask("thread/start", json!({ "cwd": folder.path() }));
    let request_id = super::request_id_value(client.last_id);
    let started = client.until(|it| it["id"] == request_id);
    let id = &started.last().expect("an answer")["result"]["thread"]["id"];
    client.thread = id.as_str().expect("a thread").to_owned();
    let (_, turn) = client.say("hello");
    let why = turn["error"]["message"].as_str().unwrap_or_default();
    assert!(
        why.contains("lies in a folder that commands may write"),
        "{turn}"
    );
    assert!(!folder.path().join("give-key.ran").exists());
}

#[test]
fn a_model_prefix_selects_the_provider() {
    let mock = MockModel::start("");
    let base_url = format!("model_providers.mine.base_url={}", mock.base_url);
    let mut server = TestServer::start(&["-c", "model=mine/big/one", "-c", &base_url]);
    let mut pipes = server.pipes();
    pipes.hello();
    let start = json!({ "id": 1, "method": "thread/start", "params": {} });
    pipes.send(start.to_string().as_bytes());
    let started = loop {
        let message = pipes.receive();
        if message["id"] == 1 {
            break message;
        }
    };
    let head = &started["result"];
    assert_eq!(head["model"], "big/one", "{head}");
    assert_eq!(head["modelProvider"], "mine", "{head}");
    let turn = json!({ "id": 2, "method": "turn/start", "params": {
        "threadId": head["thread"]["id"],
        "input": [{ "type": "text", "text": "hello" }],
    } });
    pipes.send(turn.to_string().as_bytes());
    let completed = loop {
        let message = pipes.receive();
        if message["method"] == "turn/completed" {
            break message;
        }
    };
    let turn = &completed["params"]["turn"];
    assert_eq!(turn["status"], "completed", "{turn}");
    let models: Vec<Value> = mock
        .request_bodies()
        .iter()
        .map(|it| it["model"].clone())
        .collect();
    assert_eq!(models, ["big/one"]);
}

/// No call reaches the configured provider, whose model names may have slashes.
#[test]
fn a_misspelt_provider_prefix_is_rejected_with_the_nearest_name() {
    let mut client = MockClient::start("", &[]);
    let expected = "the model provider `anthopic` has no base_url; did you mean `anthropic`? ";
    let input = json!([{ "type": "text", "text": "hello" }]);
    let thread = client.thread.clone();
    let misspelt = json!({ "threadId": thread, "input": input, "model": "anthopic/claude" });
    client.ask("turn/start", misspelt);
    let request_id = super::request_id_value(client.last_id);
    let answer = client.until(|it| it["id"] == request_id).pop();
    let answer = answer.expect("an answer");
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(expected), "{answer}");

    // A new thread stores the name, and its turns fail.
    client.ask("thread/start", json!({ "model": "anthopic/claude" }));
    let request_id = super::request_id_value(client.last_id);
    let started = client.until(|it| it["id"] == request_id).pop();
    let started = started.expect("an answer");
    let id = started["result"]["thread"]["id"].as_str();
    client.thread = id.expect("a thread").to_owned();
    let (_, turn) = client.say("hello");
    let message = turn["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(expected), "{turn}");
    assert_eq!(client.mock.request_bodies(), Vec::<Value>::new());

    // An organisation of a similar name is a model of the configured provider.
    client.thread = thread;
    let (_, turn) = client.turn(&json!({ "input": input, "model": "mistralai/large" }));
    assert_eq!(turn["status"], "completed", "{turn}");
    let bodies = client.mock.request_bodies();
    assert_eq!(bodies[0]["model"], "mistralai/large", "{bodies:?}");
}
