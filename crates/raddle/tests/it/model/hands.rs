//! The agent's hands in the real program: commands in a real fence, patches, questions.

use serde_json::{Value, json};

use super::Client;

/// Plays a turn in which the model makes one call, and answers its question, if there is one. Gives what was
/// heard, and what the model was told of the call.
fn play(call: &str, start: Value, decision: &str) -> (Vec<Value>, String, Client) {
    let script = format!(
        "[[answer]]\nmatch = 'do it'\nsteps = [{call}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]"
    );
    let mut client = Client::start(&script, &[]);
    let mut params =
        json!({"threadId": client.thread, "input": [{"type": "text", "text": "do it"}]});
    for (name, value) in start.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    client.ask("turn/start", params);
    let mut heard = client.until(|it| {
        it["method"] == "turn/completed"
            || it["method"]
                .as_str()
                .is_some_and(|it| it.ends_with("/requestApproval"))
    });
    let last = heard.last().cloned().unwrap_or_default();
    if last["method"] != "turn/completed" {
        let answer = json!({"id": last["id"], "result": {"decision": decision}});
        client.pipes.send(answer.to_string().as_bytes());
        heard.extend(client.until(|it| it["method"] == "turn/completed"));
    }
    let asked = client.mock.asked();
    let told = asked
        .last()
        .and_then(|it| it["input"].as_array()?.last().cloned());
    let told = told.unwrap_or_default()["output"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (heard, told, client)
}

fn completed(heard: &[Value], kind: &str) -> Value {
    let item = heard
        .iter()
        .find(|it| it["method"] == "item/completed" && it["params"]["item"]["type"] == kind);
    item.map(|it| it["params"]["item"].clone())
        .unwrap_or_default()
}

fn workspace() -> Value {
    json!({"sandboxPolicy": {"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true}})
}

#[test]
fn a_command_runs_in_the_fence_and_its_deltas_are_its_output() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo one; touch here; touch /beyond-raddle; echo two', login = false } }";
    let (heard, told, client) = play(call, workspace(), "accept");
    let item = completed(&heard, "commandExecution");
    let deltas = heard
        .iter()
        .filter(|it| it["method"] == "item/commandExecution/outputDelta");
    let deltas: String = deltas
        .filter_map(|it| it["params"]["delta"].as_str())
        .collect();
    assert_eq!(item["aggregatedOutput"], deltas, "{item}");
    assert!(
        deltas.contains("one\n") && deltas.contains("two\n"),
        "{deltas}"
    );
    assert!(deltas.contains("/beyond-raddle"), "{deltas}");
    assert_eq!(
        (&item["exitCode"], &item["status"]),
        (&json!(0), &json!("completed"))
    );
    assert!(client.home().join("here").exists());
    assert!(!std::path::Path::new("/beyond-raddle").exists());
    assert!(told.contains("Process exited with code 0"), "{told}");
}

/// The order is the one that was recorded from Codex.
#[test]
fn what_goes_beyond_is_asked_about_in_the_order_that_clients_know() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo beyond', login = false, sandbox_permissions = 'require_escalated', justification = 'May I?' } }";
    for (decision, status, after) in [
        (
            "accept",
            "completed",
            &["serverRequest/resolved", "thread/status/changed"][..],
        ),
        (
            "decline",
            "declined",
            &[
                "serverRequest/resolved",
                "thread/status/changed",
                "item/completed",
            ][..],
        ),
    ] {
        let (heard, _, _client) = play(call, workspace(), decision);
        let methods: Vec<&str> = heard
            .iter()
            .filter_map(|it| it["method"].as_str())
            .collect();
        let methods: Vec<&str> = methods
            .into_iter()
            .filter(|it| *it != "thread/tokenUsage/updated")
            .collect();
        let at = methods
            .iter()
            .position(|it| it.ends_with("/requestApproval"))
            .expect("a question");
        assert_eq!(
            methods[at - 2..at],
            ["thread/status/changed", "item/started"]
        );
        assert_eq!(methods[at + 1..at + 1 + after.len()], *after);
        let question = heard
            .iter()
            .find(|it| it["method"] == methods[at])
            .expect("a question");
        assert_eq!(
            question["params"]["reason"],
            "It goes beyond the sandbox. The agent says: May I?"
        );
        assert_eq!(completed(&heard, "commandExecution")["status"], status);
    }
}

#[test]
fn a_patch_changes_files_and_the_turn_tells_its_diff() {
    let patch = "*** Begin Patch\\n*** Add File: note.txt\\n+hello\\n*** End Patch\\n";
    let call = format!("{{ call = 'apply_patch', arguments = {{ input = \"{patch}\" }} }}");
    let (heard, told, client) = play(&call, workspace(), "accept");
    let item = completed(&heard, "fileChange");
    assert_eq!(item["status"], "completed", "{item} {told}");
    let written = std::fs::read_to_string(client.home().join("note.txt"));
    assert_eq!(written.expect("a file"), "hello\n");
    let diff = heard
        .iter()
        .find(|it| it["method"] == "turn/diff/updated")
        .expect("a diff");
    let diff = diff["params"]["diff"].as_str().unwrap_or_default();
    assert!(diff.contains("+hello"), "{diff}");
}

#[test]
fn in_a_read_only_sandbox_a_patch_is_asked_about_and_a_no_leaves_no_file() {
    let patch = "*** Begin Patch\\n*** Add File: note.txt\\n+hello\\n*** End Patch\\n";
    let call = format!("{{ call = 'apply_patch', arguments = {{ input = \"{patch}\" }} }}");
    // Not the server's own home, which no tool sees.
    let folder = tempfile::tempdir().expect("a folder");
    let read_only = json!({"sandboxPolicy": {"type": "readOnly"}, "cwd": folder.path()});
    let (heard, told, _client) = play(&call, read_only, "decline");
    assert!(
        heard
            .iter()
            .any(|it| it["method"] == "item/fileChange/requestApproval")
    );
    assert_eq!(completed(&heard, "fileChange")["status"], "declined");
    assert!(!folder.path().join("note.txt").exists());
    assert!(told.contains("declined"), "{told}");
}

#[test]
fn what_a_turn_leaves_running_ends_with_it() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo begun; sleep 600', login = false, yield_time_ms = 250 } }";
    let (heard, told, mut client) = play(call, workspace(), "accept");
    let item = completed(&heard, "commandExecution");
    assert_eq!(
        (&item["exitCode"], &item["processId"]),
        (&Value::Null, &json!("1"))
    );
    assert!(told.contains("Process running with session ID 1"), "{told}");
    let warned = client.until(|it| it["method"] == "warning");
    let warning = warned
        .last()
        .and_then(|it| it["params"]["message"].as_str());
    assert!(
        warning.is_some_and(|it| it.contains("sleep 600")),
        "{warning:?}"
    );
}

#[test]
fn a_command_of_the_users_runs_outside_the_sandbox() {
    let mut client = Client::start("[[answer]]\nsteps = [{ text = 'Done.' }]", &[]);
    let params = json!({"threadId": client.thread, "command": "echo mine"});
    client.ask("thread/shellCommand", params);
    let heard = client.until(|it| it["method"] == "turn/completed");
    let item = completed(&heard, "commandExecution");
    assert_eq!(
        (&item["source"], &item["exitCode"]),
        (&json!("userShell"), &json!(0))
    );
    let output = item["aggregatedOutput"].as_str().unwrap_or_default();
    assert!(output.ends_with("mine\n"), "{item}");
}
