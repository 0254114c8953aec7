//! Reverting files of turns with and without checkpoints.

use serde_json::{Value, json};

use super::{MockClient, MockModel, request_id_value};

fn client(has_checkpoints: bool) -> MockClient {
    let mock = MockModel::start("");
    let mut arguments = mock.arguments(&[]);
    for setting in [
        "sandbox_mode=workspace-write",
        "approval_policy=never",
        &format!("checkpoints.enabled={has_checkpoints}"),
    ] {
        arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }
    MockClient::of(mock, &arguments)
}

/// Runs a turn, and asks to restore its files. Returns the response.
fn reverted(client: &mut MockClient, text: &str) -> Value {
    let (_, turn) = client.say(text);
    assert_eq!(turn["status"], "completed", "{turn}");
    let params = json!({ "threadId": client.thread, "beforeTurnId": turn["id"], "what": "files" });
    client.ask("thread/revert", params);
    let request_id = request_id_value(client.last_id);
    let messages = client.until(|it| it["id"] == request_id);
    messages.last().expect("an answer").clone()
}

#[test]
fn files_of_a_turn_without_a_checkpoint_cannot_be_reverted() {
    let run = |cmd: &str| format!(r#"MOCK call name=exec_command arguments={{"cmd": "{cmd}"}}"#);
    for (has_checkpoints, text, restored) in [
        (true, "hello".to_owned(), Some(json!([]))),
        (true, run("true"), Some(json!([]))),
        (
            true,
            run("touch new"),
            Some(json!([{ "path": "new", "effect": "deleted" }])),
        ),
        (false, "hello".to_owned(), Some(json!([]))),
        (false, run("touch new"), None),
    ] {
        let mut client = client(has_checkpoints);
        let answer = reverted(&mut client, &text);
        match restored {
            Some(restored) => {
                assert_eq!(answer["result"]["restored"], restored, "{text}: {answer}")
            }
            None => assert_eq!(
                answer["error"]["data"]["errorInfo"], "no_checkpoint_of_turn",
                "{text}: {answer}"
            ),
        }
    }
}
