//! Approval requests, as forms for the user of the client.

use super::*;

/// A model that requests a command outside the sandbox, and then repeats the output.
const WANTS: &str = r#"
[[answer]]
match = "touch it"
steps = [{ call = "exec_command", arguments = { cmd = "touch made", sandbox_permissions = "require_escalated", justification = "May I?" } }]
"#;

/// Answers the next form with this result, and returns its params.
fn answer(session: &mut McpSession, result: &Value) -> Value {
    let form = session.form();
    session.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": result }));
    form["params"].clone()
}

fn decision(word: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": word } })
}

#[test]
fn a_command_runs_only_after_an_approval() {
    let interrupted = "the turn was interrupted";
    for (result, is_made, ends_with) in [
        (decision("accept"), true, ""),
        (decision("acceptForSession"), true, ""),
        (decision("decline"), false, ""),
        (decision("cancel"), false, interrupted),
        (decision("other"), false, ""),
        (json!({ "action": "accept" }), false, ""),
        (json!({ "action": "accept", "content": {} }), false, ""),
        (json!({ "action": "decline" }), false, ""),
        (json!({ "action": "cancel" }), false, interrupted),
        // As clients of Codex answer.
        (json!({ "decision": "approved" }), true, ""),
        (json!({ "decision": "denied" }), false, ""),
    ] {
        let harness = McpHarness::new(WANTS);
        let mut session = harness.start(json!({ "elicitation": {} }));
        let arguments = json!({ "prompt": "touch it", "approval-policy": "on-request" });
        let id = session.call("codex", arguments);
        let params = answer(&mut session, &result);
        let message = params["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Run this command in "), "{params}");
        let (facts, command) = message.split_once("\n\n").expect("a command");
        assert!(facts.contains("The agent says: May I?"), "{params}");
        assert!(command.contains("touch made"), "{params}");
        let choices = &params["requestedSchema"]["properties"]["decision"]["enum"];
        for word in ["accept", "decline", "cancel"] {
            let choices = choices.as_array().expect("choices");
            assert!(choices.contains(&json!(word)), "{params}");
        }

        let ended = session.result(id);
        assert!(text(&ended).ends_with(ends_with), "{result}: {ended}");
        assert_eq!(ended["isError"], !ends_with.is_empty(), "{result}: {ended}");
        let made = harness.work.path().join("made");
        assert_eq!(made.exists(), is_made, "{result}: {ended}");
    }
}

#[test]
fn an_error_of_the_client_declines() {
    let harness = McpHarness::new(WANTS);
    let mut session = harness.start(json!({ "elicitation": { "form": {} } }));
    let arguments = json!({ "prompt": "touch it", "approval-policy": "on-request" });
    let id = session.call("codex", arguments);
    let form = session.form();
    let error = json!({ "code": -32603, "message": "no window" });
    session.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "error": error }));
    assert_eq!(session.result(id)["isError"], false);
    assert!(!harness.work.path().join("made").exists());
}

#[test]
fn a_client_without_forms_is_not_asked() {
    for capabilities in [
        json!({}),
        json!({ "elicitation": null }),
        json!({ "elicitation": { "url": {} } }),
    ] {
        let harness = McpHarness::new(WANTS);
        let mut session = harness.start(capabilities);
        let arguments = json!({ "prompt": "touch it", "approval-policy": "on-request" });
        let id = session.call("codex", arguments);
        assert_eq!(session.result(id)["isError"], false);
        assert_eq!(session.others, Vec::<Value>::new());
        assert!(!harness.work.path().join("made").exists());
    }
}

#[test]
fn a_change_of_files_shows_the_files_and_the_changes() {
    for (word, is_made) in [("accept", true), ("decline", false)] {
        let harness = McpHarness::new("");
        let mut session = harness.start(json!({ "elicitation": {} }));
        let prompt = r#"MOCK call name=apply_patch input="*** Begin Patch\n*** Add File: made\n+cloth\n*** End Patch\n""#;
        let arguments =
            json!({ "prompt": prompt, "sandbox": "read-only", "approval-policy": "on-request" });
        let id = session.call("codex", arguments);
        let params = answer(&mut session, &decision(word));
        let message = params["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Change these files?"), "{params}");
        assert!(
            message.contains("made") && message.contains("cloth"),
            "{params}"
        );
        assert_eq!(session.result(id)["isError"], false);
        assert_eq!(harness.work.path().join("made").exists(), is_made);
    }
}

#[test]
fn permissions_are_granted_or_not() {
    for (word, is_made) in [("accept", true), ("decline", false)] {
        let other = TempDir::new_in("/var/tmp").expect("a folder");
        let folder = other.path().canonicalize().expect("a path");
        let made = folder.join("made");
        let script = format!(
            "[[answer]]\nmatch = 'weave it'\nsteps = [{{ call = 'request_permissions', arguments = {{ \
             reason = 'to build', permissions = {{ file_system = {{ write = ['{}'] }} }} }} }}]\n\
             [[answer]]\ntimes = 1\nsteps = [{{ call = 'exec_command', arguments = {{ \
             cmd = 'touch {}', login = false }} }}]\n\
             [[answer]]\nsteps = [{{ text = 'Done.' }}]\n",
            folder.display(),
            made.display()
        );
        let harness = McpHarness::new(&script);
        let mut session = harness.start(json!({ "elicitation": {} }));
        let arguments = json!({
            "prompt": "weave it", "sandbox": "workspace-write", "approval-policy": "on-request",
        });
        let id = session.call("codex", arguments);
        let params = answer(&mut session, &decision(word));
        let message = params["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Grant these permissions?"), "{params}");
        assert!(message.contains(&*folder.to_string_lossy()), "{params}");
        let ended = session.result(id);
        assert_eq!(text(&ended), "Done.", "{ended}");
        assert_eq!(made.exists(), is_made, "{ended}");
    }
}
