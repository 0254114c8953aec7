//! Runs that fail: one clear message, and nothing left behind.

use super::*;

/// The status of a run, and its lines on stderr.
fn lines(output: &ExecOutput) -> (Option<i32>, Vec<&str>) {
    (output.code, output.err.lines().collect())
}

/// The number of stored threads.
fn stored_threads(harness: &ExecHarness) -> usize {
    let mut list = command(harness.home.path());
    list.args(["thread", "list", "--json"]);
    let output = ExecOutput::of(list.output().expect("started"));
    output.events()[0]["data"]
        .as_array()
        .expect("threads")
        .len()
}

#[test]
fn a_missing_socket_is_named_with_the_remedy() {
    let harness = ExecHarness::new("");
    let socket = harness.work.path().join("no.sock").display().to_string();
    let output = harness.run(&["--remote", &format!("unix://{socket}"), "x"]);
    let (code, lines) = lines(&output);
    assert_eq!((code, lines.len()), (Some(1), 1), "{output:?}");
    for text in [socket.as_str(), "No such file", "`raddle daemon start`"] {
        assert!(lines[0].contains(text), "{text} in {output:?}");
    }
}

#[test]
fn a_dead_address_is_named() {
    let harness = ExecHarness::new("");
    let output = harness.run(&["--remote", "ws://127.0.0.1:9", "x"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.err.contains("ws://127.0.0.1:9: "), "{output:?}");
}

/// The child prints the reason itself.
#[test]
fn a_server_that_explains_its_failure_is_not_explained_again() {
    let harness = ExecHarness::new("");
    fs::write(harness.home.path().join("rules.toml"), "[[rule]\n").expect("rules");
    let output = harness.run(&["x"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.err.contains("rules.toml"), "{output:?}");
    assert!(!output.err.contains("initialize"), "{output:?}");
    // A program that reads events gets one.
    let output = harness.run(&["--json", "x"]);
    let events = output.events();
    assert_eq!((output.code, events.len()), (Some(1), 1), "{output:?}");
    assert_eq!(events[0]["type"], "error", "{output:?}");
    assert!(!output.err.contains("initialize"), "{output:?}");
}

#[test]
fn a_retry_for_the_same_reason_is_shown_once() {
    let harness = ExecHarness::new("repeat = true\n[[answer]]\nsteps = [{ fault = 'context' }]\n");
    let output = harness.run(&["too long"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(harness.mock.request_bodies().len() > 2, "{output:?}");
    assert_eq!(
        output.err.matches("trying again: ").count(),
        1,
        "{output:?}"
    );
}

#[test]
fn an_answer_before_a_warning_is_printed_once() {
    let harness = ExecHarness::new(
        "[[answer]]\nsteps = [{ usage = { input = 85, output = 2 } }, { text = 'All woven.' }]\n",
    );
    let output = harness.run(&["--budget", "tokens=100", "x"]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), "All woven.\n"),
        "{output:?}"
    );
    assert!(output.err.contains("warning: "), "{output:?}");
    assert!(!output.err.contains("All woven."), "{output:?}");
}

#[test]
fn a_resumed_thread_gets_the_budgets_of_the_command() {
    let answer =
        "[[answer]]\nsteps = [{ usage = { input = 85, output = 2 } }, { text = 'Woven.' }]\n";
    let harness = ExecHarness::new(&format!("repeat = true\n{answer}"));
    let output = harness.run(&["-c", "budget.thread.tokens=80", "x"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let output = harness.run(&["resume", "--last", "x"]);
    assert_eq!(output.code, Some(4), "{output:?}");
    // The error names the setting, and the command that raises it.
    let advice = "raise budget.thread.tokens, with `raddle exec resume -c`";
    assert!(output.err.contains(advice), "{output:?}");
    let more = ["resume", "--last", "-c", "budget.thread.tokens=500", "x"];
    let output = harness.run(&more);
    assert_eq!(output.code, Some(0), "{output:?}");
    // A narrower budget counts too.
    let output = harness.run(&["resume", "--last", "--budget", "tokens=80", "x"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let exceeded = "this turn has used 87 tokens of 80 tokens";
    assert!(output.err.contains(exceeded), "{output:?}");
}

#[test]
fn a_resumed_thread_gets_the_permission_profile_of_the_command() {
    let harness = ExecHarness::new("");
    let touch =
        |name| format!(r#"MOCK call name=exec_command arguments={{"cmd": "touch {name}"}}"#);
    let output = harness.run(&["--sandbox", "workspace-write", &touch("wide")]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let profile = "default_permissions=:read-only";
    let output = harness.run(&["resume", "--last", "-c", profile, &touch("narrow")]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let has_written = |name| harness.work.path().join(name).exists();
    assert!(has_written("wide"), "{output:?}");
    assert!(!has_written("narrow"), "{output:?}");
}

/// A turn that failed may be continued after its cause is removed: `resume --last` must not take an
/// older thread.
#[test]
fn a_failed_turn_leaves_its_thread() {
    let harness = ExecHarness::new("");
    let cases: [&[&str]; 5] = [
        &["-c", "model_provider=nobody", "x"],
        &["-c", "model_providers.mock.env_key=NO_SUCH_KEY", "x"],
        &["MOCK unauthorized"],
        &["--json", "MOCK unauthorized"],
        &[
            "-c",
            "model_providers.mock.request_max_retries=0",
            "MOCK 500",
        ],
    ];
    for (before, words) in cases.into_iter().enumerate() {
        let output = harness.run(words);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(!output.err.contains("deleted"), "{output:?}");
        assert_eq!(stored_threads(&harness), before + 1, "{words:?} {output:?}");
    }
}

#[test]
fn a_refused_turn_leaves_no_thread() {
    let harness = ExecHarness::new("");
    let image = harness.work.path().join("no.png");
    fs::write(&image, "no image").expect("a file");
    let image = image.display().to_string();
    let output = harness.run(&["--image", &image, "x"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.err.contains("the turn cannot be started")
            && output.err.contains("the thread was deleted"),
        "{output:?}"
    );
    assert_eq!(stored_threads(&harness), 0, "{output:?}");
}
