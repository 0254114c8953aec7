//! Cancelled calls, and clients that leave.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// A model that requests a command outside the sandbox.
const WANTS: &str = r#"
[[answer]]
match = "touch it"
steps = [{ call = "exec_command", arguments = { cmd = "touch made", sandbox_permissions = "require_escalated" } }]
"#;

#[test]
fn a_cancelled_call_interrupts_its_turn() {
    let harness = McpHarness::new(HELD);
    let mut session = harness.start(json!({}));
    let id = session.call("codex", json!({ "prompt": "x" }));
    harness.wait_until_held(1);
    session.notify("notifications/cancelled", json!({ "requestId": id }));
    harness.wait_until_held(0);
    let (code, rest) = session.close();
    assert_eq!(code, Some(0), "{rest:?}");
    assert_eq!(
        rest,
        Vec::<Value>::new(),
        "a cancelled call has no response"
    );
    let shown = harness.thread(&["show", &harness.only_thread()]);
    assert!(
        shown.contains("interrupted: requested by a client"),
        "{shown}"
    );
}

#[test]
fn a_call_that_is_cancelled_before_its_turn_leaves_no_thread() {
    let harness = McpHarness::new(HELD);
    let mut session = harness.start(json!({}));
    let id = session.call("codex", json!({ "prompt": "x" }));
    session.notify("notifications/cancelled", json!({ "requestId": id }));
    let (code, rest) = session.close();
    assert_eq!((code, rest), (Some(0), Vec::new()));
    let page = harness.thread(&["list", "--json"]);
    let page: Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!(page["data"], json!([]));
}

#[test]
fn the_form_of_a_cancelled_call_is_withdrawn() {
    let harness = McpHarness::new(WANTS);
    let mut session = harness.start(json!({ "elicitation": {} }));
    let arguments = json!({ "prompt": "touch it", "approval-policy": "on-request" });
    let id = session.call("codex", arguments);
    let form = session.form();
    session.notify("notifications/cancelled", json!({ "requestId": id }));
    let withdrawn = session.until(|it| it["method"] == "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], form["id"]);
    // Too late.
    let result = json!({ "action": "accept", "content": { "decision": "accept" } });
    session.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": result }));
    let (code, rest) = session.close();
    assert_eq!(code, Some(0), "{rest:?}");
    assert!(!harness.work.path().join("made").exists());
}

#[test]
fn the_end_of_stdin_ends_the_server_and_stores_the_turn() {
    let harness = McpHarness::new(HELD);
    let mut session = harness.start(json!({}));
    session.call("codex", json!({ "prompt": "x" }));
    harness.wait_until_held(1);
    let (code, rest) = session.close();
    assert_eq!(code, Some(0), "{rest:?}");
    let shown = harness.thread(&["show", &harness.only_thread()]);
    assert!(
        shown.contains("interrupted: requested by a client"),
        "{shown}"
    );
}

#[test]
fn a_signal_ends_the_server_in_order() {
    let harness = McpHarness::new(HELD);
    let mut session = harness.start(json!({}));
    session.call("codex", json!({ "prompt": "x" }));
    harness.wait_until_held(1);
    kill_process(Pid::from_child(&session.child), Signal::TERM).expect("it runs");
    assert_eq!(session.child.wait().expect("an end").code(), Some(0));
    let shown = harness.thread(&["show", &harness.only_thread()]);
    assert!(
        shown.contains("interrupted: requested by a client"),
        "{shown}"
    );
}

#[test]
fn a_configuration_that_cannot_be_read_ends_it_at_once() {
    let home = TempDir::new().expect("a home");
    std::fs::write(home.path().join("config.toml"), "model = ").expect("a file");
    let output = command(home.path())
        .arg("mcp-server")
        .env_remove("RADDLE_LOG_FORMAT")
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("config.toml"), "{stderr}");
    assert_eq!(output.stdout, b"");
}
