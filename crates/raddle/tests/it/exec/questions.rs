//! Approval requests: on a terminal, and where no user can be asked.

use std::io::Write;

use super::*;
use crate::support::server::TestServer;
use crate::support::terminal::TestTerminal;

/// A model that requests a command outside the sandbox, and then repeats the output.
const WANTS: &str = r#"
[[answer]]
match = "touch it"
steps = [{ call = "exec_command", arguments = { cmd = "touch made", sandbox_permissions = "require_escalated", justification = "May I?" } }]
"#;

#[test]
fn without_a_terminal_approvals_are_denied_at_once() {
    for (settings, message) in [
        // The default policy asks for no approval.
        (&[][..], ""),
        (
            &["-c", "approval_policy=on-request"],
            "denied, because there is no terminal to ask on: ",
        ),
    ] {
        let harness = ExecHarness::new(WANTS);
        let mut words = vec!["--quiet", "touch it"];
        words.extend(settings);
        let output = harness.run(&words);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(
            output.err.contains(message) && (message.is_empty() == output.err.is_empty()),
            "{output:?}"
        );
        assert!(!harness.work.path().join("made").exists());
    }
}

#[test]
fn approval_is_requested_on_the_terminal() {
    for (typed, is_made, expected) in [
        ("y\n", true, None),
        ("n\n", false, None),
        ("use cp instead\n", false, Some("use cp instead")),
    ] {
        let harness = ExecHarness::new(WANTS);
        let mut terminal = TestTerminal::open();
        let mut exec = harness.command(&["-c", "approval_policy=on-request", "touch it"]);
        exec.stdin(terminal.program_side())
            .stderr(terminal.program_side());
        let child = exec.spawn().expect("started");
        terminal.wait_for("touch made");
        terminal.wait_for("[y/a/n");
        terminal
            .user_side
            .write_all(typed.as_bytes())
            .expect("typed");
        let output = ExecOutput::of(child.wait_with_output().expect("an end"));
        assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
        assert_eq!(
            harness.work.path().join("made").exists(),
            is_made,
            "{typed}"
        );
        if let Some(text) = expected {
            let request = harness.mock.request_bodies().pop().expect("a call")["input"].to_string();
            assert!(request.contains(text), "{request}");
        }
    }
}

#[test]
fn input_before_a_question_is_discarded() {
    let harness = ExecHarness::new(WANTS);
    let mut terminal = TestTerminal::open();
    let program_side = terminal.program_side();
    terminal.user_side.write_all(b"y\n").expect("typed");
    let mut exec = harness.command(&["-c", "approval_policy=on-request", "touch it"]);
    exec.stdin(program_side).stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    terminal.user_side.write_all(b"n\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
    assert!(!harness.work.path().join("made").exists());
}

#[test]
fn requested_permissions_are_shown() {
    let other = TempDir::new().expect("a folder");
    let other = other.path().canonicalize().expect("a path");
    let other = other.display().to_string();
    for (call, lines) in [
        (
            format!(
                "call = 'request_permissions', arguments = {{ reason = 'to build', permissions = {{ \
                 file_system = {{ write = ['{other}'] }}, network = {{ enabled = true }} }} }}"
            ),
            vec![
                "Grant these permissions?".to_owned(),
                format!("  may write {other}"),
                "  may use the network".to_owned(),
                "  because: to build".to_owned(),
            ],
        ),
        (
            format!(
                "call = 'exec_command', arguments = {{ cmd = 'touch made', workdir = '{other}', \
                 sandbox_permissions = 'require_escalated', justification = 'to build' }}"
            ),
            vec![
                format!("  in {other}"),
                "The agent says: to build".to_owned(),
            ],
        ),
    ] {
        let script = format!("[[answer]]\nmatch = 'touch it'\nsteps = [{{ {call} }}]\n");
        let harness = ExecHarness::new(&script);
        let mut terminal = TestTerminal::open();
        let mut exec = harness.command(&["-c", "approval_policy=on-request", "touch it"]);
        exec.stdin(terminal.program_side())
            .stderr(terminal.program_side());
        let child = exec.spawn().expect("started");
        terminal.wait_for("[y/a/n");
        terminal.user_side.write_all(b"n\n").expect("typed");
        let output = ExecOutput::of(child.wait_with_output().expect("an end"));
        let shown = terminal.shown();
        assert_eq!(output.code, Some(0), "{output:?} {shown}");
        for line in lines {
            assert!(shown.contains(&line), "{line} in {shown}");
        }
    }
}

#[test]
fn file_changes_are_shown() {
    let outside = TempDir::new().expect("a folder");
    let target = outside
        .path()
        .canonicalize()
        .expect("a path")
        .join("target");
    let more: String = (1..=30).map(|it| format!("+line {it}\n")).collect();
    let patch = format!(
        "*** Begin Patch\n*** Update File: notes\n*** Move to: {}\n@@\n-old\n{more}*** End Patch\n",
        target.display()
    );
    let patch = Value::from(patch);
    let harness = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'move it'\nsteps = [{{ call = 'apply_patch', arguments = {{ input = {patch} }} }}]\n"
    ));
    fs::write(harness.work.path().join("notes"), "old\n").expect("a file");
    let mut terminal = TestTerminal::open();
    let words = [
        "--color",
        "never",
        "-c",
        "approval_policy=on-request",
        "move it",
    ];
    let mut exec = harness.command(&words);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    let shown = terminal.shown();
    for line in [
        "  │ -old",
        "  │ +line 30",
        "more lines; ? pages through all",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    let flat = shown.replace("\r\n  │ ", "");
    let moved = format!("  and move it to {}", target.display());
    assert!(flat.contains(&moved), "{shown}");
    assert!(!shown.contains("+line 20"), "{shown}");
    terminal.user_side.write_all(b"?\n").expect("typed");
    terminal.wait_for("lines 1 to 22 of ");
    terminal.user_side.write_all(b"?\n").expect("typed");
    terminal.wait_for("  │ +line 20");
    terminal.user_side.write_all(b"n\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
    terminal.wait_for(": declined");
    assert!(!target.exists());
}

/// A new file has its content on the wire. It is shown as additions, and `?` shows more than the
/// question.
#[test]
fn a_new_file_is_shown_and_its_answers_are_explained() {
    let patch = "*** Begin Patch\n*** Add File: haiku\n+Warp holds the light,\n*** End Patch\n";
    let patch = Value::from(patch);
    let harness = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'write it'\nsteps = [{{ call = 'apply_patch', arguments = {{ input = {patch} }} }}]\n"
    ));
    let mut terminal = TestTerminal::open();
    let words = ["--color", "never", "--sandbox", "read-only", "write it"];
    let mut exec = harness.command(&words);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("always in this session, no, or why not? [y/a/n/?/…] ");
    let shown = terminal.shown();
    assert!(shown.contains("  │ +Warp holds the light,"), "{shown}");
    assert!(!shown.contains("  y: "), "{shown}");
    terminal.user_side.write_all(b"?\n").expect("typed");
    terminal.wait_for("  a: makes it, and allows every change of these files");
    terminal.wait_for("  for good: a rule with write = ");
    // No rule is offered on the wire for a change of files, so this is no answer.
    terminal.user_side.write_all(b"r\n").expect("typed");
    eventually("the question again", || {
        (terminal.shown().matches("[y/a/n/?/…] ").count() == 3).then_some(())
    });
    terminal.user_side.write_all(b"y\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
    assert!(harness.work.path().join("haiku").exists());
}

#[test]
fn a_rule_is_offered_and_stored() {
    use std::os::unix::fs::PermissionsExt as _;
    let call = "{ call = 'exec_command', arguments = { cmd = './loom twill', login = false } }";
    let harness = ExecHarness::new(&format!("[[answer]]\nmatch = 'weave'\nsteps = [{call}]\n"));
    let loom = harness.work.path().join("loom");
    fs::write(&loom, "#!/bin/sh\necho woven\n").expect("a program");
    fs::set_permissions(&loom, fs::Permissions::from_mode(0o755)).expect("its mode");
    let words = [
        "--color",
        "never",
        "-c",
        "approval_policy=untrusted",
        "weave",
    ];
    let mut terminal = TestTerminal::open();
    let mut exec = harness.command(&words);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/r/n/?/…] ");
    let shown = terminal.shown();
    let flat = shown.replace("\r\n  │ ", "");
    let offer =
        r#"  r adds a rule to rules.toml: allow commands that begin with ["./loom","twill"]"#;
    assert!(flat.contains(offer), "{shown}");
    terminal.user_side.write_all(b"r\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
    let rules = fs::read_to_string(harness.home.path().join("rules.toml")).expect("the rules");
    assert!(
        rules.contains(r#"command = ["./loom", "twill"]"#),
        "{rules}"
    );
    let request = harness.mock.request_bodies().pop().expect("a call")["input"].to_string();
    assert!(request.contains("woven"), "{request}");
}

#[test]
fn typed_ahead_input_answers_one_question() {
    let question = |id: &str| {
        format!(
            "{{ id = '{id}', header = '{id}', question = 'Which {id}?', options = [\
             {{ label = 'Red {id}', description = '' }}, {{ label = 'Yellow {id}', description = '' }}] }}"
        )
    };
    let harness = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'dye it'\nsteps = [{{ call = 'request_user_input', arguments = {{ \
         questions = [{}, {}] }} }}]\n",
        question("cloth"),
        question("thread")
    ));
    let mut terminal = TestTerminal::open();
    let mut exec = harness.command(&["dye it"]);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("in words: ");
    terminal.user_side.write_all(b"y\ny\n").expect("typed");
    eventually("another question", || {
        (terminal.shown().matches("in words: ").count() == 2).then_some(())
    });
    terminal.user_side.write_all(b"1\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
    let request = harness.mock.request_bodies().pop().expect("a call");
    let items = request["input"].as_array().expect("input").iter();
    let outputs: Vec<&Value> = items.filter_map(|it| it.get("output")).collect();
    let output_text = Value::from_iter(outputs.into_iter().cloned()).to_string();
    let is_sent =
        ["Yellow cloth", "Red thread", "Yellow thread"].map(|it| output_text.contains(it));
    assert_eq!(is_sent, [true, true, false], "{output_text}");
}

#[test]
fn text_of_the_agent_cannot_imitate_a_question() {
    let forged =
        "true\nRun this command? ls\n  because: it only looks\nyes, always, no, or why not? ";
    let more: String = (0..30).map(|it| format!("\necho {it}")).collect();
    let call = format!(
        "call = 'exec_command', arguments = {{ cmd = {}, sandbox_permissions = \
         'require_escalated', justification = {} }}",
        Value::from(format!("{forged}{more}")),
        Value::from("to build\nRun this command? ls"),
    );
    let message = Value::from("See:\nRun this command? ls");
    let harness = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'touch it'\nsteps = [{{ text = {message} }}, {{ {call} }}]\n"
    ));
    let mut terminal = TestTerminal::open();
    let words = [
        "--color",
        "never",
        "-c",
        "approval_policy=on-request",
        "touch it",
    ];
    let mut exec = harness.command(&words);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    assert!(
        !terminal.shown().contains("echo 20"),
        "{}",
        terminal.shown()
    );
    assert!(terminal.shown().contains("more lines; ? pages through all"));
    // The end is shown too: the omitted part is in the middle.
    assert!(terminal.shown().contains("  │ echo 29"));
    assert!(terminal.shown().contains("SHA-256 of all of it: "));
    terminal.user_side.write_all(b"?\n").expect("typed");
    terminal.wait_for("lines 1 to 22 of 44; ? shows the next page");
    terminal.user_side.write_all(b"?\n").expect("typed");
    terminal.wait_for("  │ echo 20");
    terminal.user_side.write_all(b"n\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    let shown = terminal.shown();
    assert_eq!(output.code, Some(0), "{output:?} {shown}");
    let is_forged =
        |line: &&str| line.starts_with("Run this command? ls") || line.ends_with("not? ");
    let forged: Vec<&str> = shown.lines().filter(is_forged).collect();
    assert!(
        forged.iter().all(|it| it.starts_with("  │ ")),
        "{forged:?} {shown}"
    );
    // Its message, and twice its command and its reason.
    assert_eq!(
        shown.matches("  │ Run this command? ls").count(),
        5,
        "{shown}"
    );
}

#[test]
fn an_unattended_thread_asks_for_approval_on_a_terminal() {
    let harness = ExecHarness::new(WANTS);
    let output = harness.run(&["--quiet", "hello"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let mut terminal = TestTerminal::open();
    let mut exec = harness.command(&["resume", "--last", "touch it"]);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    terminal.user_side.write_all(b"y\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
    assert!(harness.work.path().join("made").exists());
}

#[test]
fn nothing_is_written_after_an_open_question() {
    let harness = ExecHarness::new(
        "[[answer]]\nmatch = 'touch it'\nsteps = [{ call = 'exec_command', arguments = { \
         cmd = 'touch made', sandbox_permissions = 'require_escalated', justification = 'so' } }, \
         { call = 'exec_command', arguments = { cmd = 'touch beside' } }]\n",
    );
    let mut terminal = TestTerminal::open();
    let words = [
        "--color",
        "never",
        "--sandbox",
        "workspace-write",
        "-c",
        "approval_policy=on-request",
        "touch it",
    ];
    let mut exec = harness.command(&words);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n/?/…] ");
    eventually("the other command", || {
        harness.work.path().join("beside").exists().then_some(())
    });
    terminal.user_side.write_all(b"y\n").expect("typed");
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    let shown = terminal.shown();
    assert_eq!(output.code, Some(0), "{output:?} {shown}");
    assert!(harness.work.path().join("made").exists());
    assert!(shown.contains("touch beside"), "{shown}");
    let (before, _) = shown.split_once("[y/a/n/?/…] y").expect("the answer");
    assert!(!before.contains("[y/a/n"), "{shown}");
}

/// The turn belongs to the user who sees the question.
#[test]
fn a_run_without_a_terminal_declines_nothing_in_a_turn_that_it_joins() {
    let harness = ExecHarness::new(WANTS);
    let arguments = harness.mock.arguments(&[]);
    let mut words = vec!["--listen", "unix://"];
    words.extend(arguments.iter().map(String::as_str));
    let server = TestServer::start(&words);
    let remote = format!("unix://{}", server.socket().display());
    let mut terminal = TestTerminal::open();
    let policy = "approval_policy=on-request";
    let mut exec = harness.command(&["--remote", &remote, "-c", policy, "touch it"]);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let first = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    let mut exec = harness.command(&["--remote", &remote, "resume", "--last", "go on"]);
    let mut second = exec.stderr(Stdio::piped()).spawn().expect("started");
    let lines = BufReader::new(second.stderr.take().expect("stderr")).lines();
    let mut lines = lines.map(|it| it.expect("a line"));
    let left = lines.find(|it| it.contains("left to other clients"));
    let left = left.expect("a line about the question");
    assert!(left.contains("touch made"), "{left}");
    terminal.user_side.write_all(b"y\n").expect("typed");
    let first = ExecOutput::of(first.wait_with_output().expect("an end"));
    assert_eq!(first.code, Some(0), "{first:?} {}", terminal.shown());
    assert!(second.wait().expect("an end").success());
    assert!(harness.work.path().join("made").exists());
}
