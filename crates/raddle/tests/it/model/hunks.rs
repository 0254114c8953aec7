//! Approval of a change hunk by hunk, in the real binary.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{MockClient, MockModel};
use crate::support::server::TestServer;

/// A client that may choose hunks, and change the settings of a thread.
fn client(script: &str) -> MockClient {
    let mock = MockModel::start(script);
    let arguments = mock.arguments(&[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server = TestServer::start(&arguments);
    let mut pipes = server.pipes();
    let params = json!({
        "clientInfo": { "name": "it", "version": "0" },
        "capabilities": { "experimentalApi": true, "extensions": { "raddle/hunks": {} } },
    });
    let initialize = json!({ "id": "hello", "method": "initialize", "params": params });
    let answer = pipes.ask(initialize.to_string().as_bytes());
    assert!(answer["result"].is_object(), "{answer}");
    MockClient::on(mock, server, pipes)
}

fn numbers(second: &str) -> String {
    let line = |number| match number {
        2 => format!("{second}\n"),
        number => format!("{number}\n"),
    };
    (1..=20).map(line).collect()
}

/// Lets the model patch two places of the file `sub/numbers`, accepts the first of them after another
/// client moved the thread to `sub`, and returns what the model reads.
fn accept_the_first(folder: &Path, path: &str) -> String {
    fs::create_dir_all(folder.join("sub")).expect("a folder");
    fs::write(folder.join("sub/numbers"), numbers("2")).expect("a file");
    let patch = format!(
        "*** Begin Patch\\n*** Update File: {path}\\n@@\\n-2\\n+two\\n@@\\n-18\\n+eighteen\\n*** End Patch\\n"
    );
    let script = format!(
        "[[answer]]\nmatch = 'do it'\nsteps = [{{ call = 'apply_patch', arguments = {{ input = \"{patch}\" }} }}]\n\
         [[answer]]\nsteps = [{{ text = 'Done.' }}]"
    );
    let mut client = client(&script);
    let start = json!({
        "threadId": client.thread,
        "input": [{ "type": "text", "text": "do it" }],
        "cwd": folder,
        "sandboxPolicy": { "type": "dangerFullAccess" },
        "approvalPolicy": "untrusted",
    });
    client.ask("turn/start", start);
    let messages = client.until(|it| it["method"] == "item/fileChange/requestApproval");
    let request = messages.last().expect("a request").clone();
    let hunks = request["params"]["hunks"].as_array().expect("hunks");
    assert_eq!(hunks.len(), 2, "{request}");

    let change = json!({ "threadId": client.thread, "cwd": folder.join("sub") });
    client.ask("thread/settings/update", change);
    client.until(|it| it["method"] == "thread/settings/updated");
    let accepted = json!({ "id": hunks[0]["id"], "accept": true });
    let decision = json!({ "acceptHunks": { "hunks": [accepted] } });
    let answer = json!({ "id": request["id"], "result": { "decision": decision } });
    client.pipes.send(answer.to_string().as_bytes());
    client.until(|it| it["method"] == "turn/completed");
    let requests = client.mock.request_bodies();
    let last = requests
        .last()
        .and_then(|it| it["input"].as_array()?.last());
    let output = last.map(|it| it["output"].clone()).unwrap_or_default();
    output.as_str().map(str::to_owned).unwrap_or_default()
}

/// The user chose among the hunks of a file. They are written to that file.
#[test]
fn accepted_hunks_are_written_though_the_working_directory_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sub/numbers");
    let output = accept_the_first(folder.path(), &path.display().to_string());
    assert!(
        output.contains("The user accepted 1 of 2 hunks."),
        "{output}"
    );
    assert_eq!(fs::read_to_string(path).expect("a file"), numbers("two"));
}

/// A relative path leads to another file by then. Nothing is written, as after a plain `accept`.
#[test]
fn accepted_hunks_are_not_written_to_another_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("sub/sub/numbers");
    fs::create_dir_all(folder.path().join("sub/sub")).expect("folders");
    fs::write(&other, numbers("2")).expect("a file");
    let output = accept_the_first(folder.path(), "sub/numbers");
    assert!(output.contains("is no longer what was allowed"), "{output}");
    for path in [other, folder.path().join("sub/numbers")] {
        assert_eq!(fs::read_to_string(path).expect("a file"), numbers("2"));
    }
}
