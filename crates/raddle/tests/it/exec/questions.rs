//! Questions: on a terminal, and where nobody can be asked.

use std::io::Write;

use super::*;
use crate::support::terminal::TestTerminal;

/// A model that wants to run a command outside the sandbox, and then says what it heard.
const WANTS: &str = r#"
[[answer]]
match = "touch it"
steps = [{ call = "exec_command", arguments = { cmd = "touch made", sandbox_permissions = "require_escalated", justification = "May I?" } }]
"#;

#[test]
fn without_a_terminal_nobody_is_asked_and_nothing_waits() {
    for (settings, said) in [
        // Nobody is to be asked, so nobody is.
        (&[][..], ""),
        (
            &["-c", "approval_policy=on-request"],
            "denied, because nobody can be asked here: ",
        ),
    ] {
        let bench = ExecHarness::new(WANTS);
        let mut words = vec!["--quiet", "touch it"];
        words.extend(settings);
        let ran = bench.run(&words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(
            ran.err.contains(said) && (said.is_empty() == ran.err.is_empty()),
            "{ran:?}"
        );
        assert!(!bench.work.path().join("made").exists());
    }
}

#[test]
fn on_a_terminal_it_is_asked_there() {
    for (typed, is_made, heard) in [
        ("y\n", true, None),
        ("n\n", false, None),
        ("use cp instead\n", false, Some("use cp instead")),
    ] {
        let bench = ExecHarness::new(WANTS);
        let mut terminal = TestTerminal::open();
        let mut exec = bench.command(&["-c", "approval_policy=on-request", "touch it"]);
        exec.stdin(terminal.theirs()).stderr(terminal.theirs());
        let child = exec.spawn().expect("started");
        terminal.wait_for("touch made");
        terminal.wait_for("[y/a/n");
        terminal.ours.write_all(typed.as_bytes()).expect("typed");
        let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
        assert_eq!(ran.code, Some(0), "{ran:?} {}", terminal.shown());
        assert_eq!(bench.work.path().join("made").exists(), is_made, "{typed}");
        if let Some(text) = heard {
            let asked = bench.mock.asked().pop().expect("a call")["input"].to_string();
            assert!(asked.contains(text), "{asked}");
        }
    }
}

#[test]
fn what_is_typed_before_a_question_is_no_answer_to_it() {
    let bench = ExecHarness::new(WANTS);
    let mut terminal = TestTerminal::open();
    let theirs = terminal.theirs();
    terminal.ours.write_all(b"y\n").expect("typed");
    let mut exec = bench.command(&["-c", "approval_policy=on-request", "touch it"]);
    exec.stdin(theirs).stderr(terminal.theirs());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    terminal.ours.write_all(b"n\n").expect("typed");
    let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(ran.code, Some(0), "{ran:?} {}", terminal.shown());
    assert!(!bench.work.path().join("made").exists());
}

#[test]
fn what_a_yes_would_give_is_shown() {
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
                "may I have more rights?".to_owned(),
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
        let bench = ExecHarness::new(&script);
        let mut terminal = TestTerminal::open();
        let mut exec = bench.command(&["-c", "approval_policy=on-request", "touch it"]);
        exec.stdin(terminal.theirs()).stderr(terminal.theirs());
        let child = exec.spawn().expect("started");
        terminal.wait_for("[y/a/n");
        terminal.ours.write_all(b"n\n").expect("typed");
        let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
        let shown = terminal.shown();
        assert_eq!(ran.code, Some(0), "{ran:?} {shown}");
        for line in lines {
            assert!(shown.contains(&line), "{line} in {shown}");
        }
    }
}

#[test]
fn what_would_change_in_files_is_shown() {
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
    let bench = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'move it'\nsteps = [{{ call = 'apply_patch', arguments = {{ input = {patch} }} }}]\n"
    ));
    fs::write(bench.work.path().join("notes"), "old\n").expect("a file");
    let mut terminal = TestTerminal::open();
    let words = [
        "--color",
        "never",
        "-c",
        "approval_policy=on-request",
        "move it",
    ];
    let mut exec = bench.command(&words);
    exec.stdin(terminal.theirs()).stderr(terminal.theirs());
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
    terminal.ours.write_all(b"?\n").expect("typed");
    terminal.wait_for("lines 1 to 22 of ");
    terminal.ours.write_all(b"?\n").expect("typed");
    terminal.wait_for("  │ +line 20");
    terminal.ours.write_all(b"n\n").expect("typed");
    let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(ran.code, Some(0), "{ran:?} {}", terminal.shown());
    terminal.wait_for(": declined");
    assert!(!target.exists());
}

#[test]
fn what_is_typed_ahead_answers_one_question() {
    let question = |id: &str| {
        format!(
            "{{ id = '{id}', header = '{id}', question = 'Which {id}?', options = [\
             {{ label = 'Red {id}', description = '' }}, {{ label = 'Yellow {id}', description = '' }}] }}"
        )
    };
    let bench = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'dye it'\nsteps = [{{ call = 'request_user_input', arguments = {{ \
         questions = [{}, {}] }} }}]\n",
        question("cloth"),
        question("thread")
    ));
    let mut terminal = TestTerminal::open();
    let mut exec = bench.command(&["dye it"]);
    exec.stdin(terminal.theirs()).stderr(terminal.theirs());
    let child = exec.spawn().expect("started");
    terminal.wait_for("in words: ");
    terminal.ours.write_all(b"y\ny\n").expect("typed");
    eventually("another question", || {
        (terminal.shown().matches("in words: ").count() == 2).then_some(())
    });
    terminal.ours.write_all(b"1\n").expect("typed");
    let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(ran.code, Some(0), "{ran:?} {}", terminal.shown());
    let asked = bench.mock.asked().pop().expect("a call");
    let heard = asked["input"].as_array().expect("input").iter();
    let heard: Vec<&Value> = heard.filter_map(|it| it.get("output")).collect();
    let heard = Value::from_iter(heard.into_iter().cloned()).to_string();
    let is_heard = ["Yellow cloth", "Red thread", "Yellow thread"].map(|it| heard.contains(it));
    assert_eq!(is_heard, [true, true, false], "{heard}");
}

#[test]
fn what_the_agent_writes_does_not_look_like_ours() {
    let forged = "true\nmay I? ls\n  because: it only looks\nyes, always, no, or why not? ";
    let more: String = (0..30).map(|it| format!("\necho {it}")).collect();
    let call = format!(
        "call = 'exec_command', arguments = {{ cmd = {}, sandbox_permissions = \
         'require_escalated', justification = {} }}",
        Value::from(format!("{forged}{more}")),
        Value::from("to build\nmay I? ls"),
    );
    let said = Value::from("See:\nmay I? ls");
    let bench = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'touch it'\nsteps = [{{ text = {said} }}, {{ {call} }}]\n"
    ));
    let mut terminal = TestTerminal::open();
    let words = [
        "--color",
        "never",
        "-c",
        "approval_policy=on-request",
        "touch it",
    ];
    let mut exec = bench.command(&words);
    exec.stdin(terminal.theirs()).stderr(terminal.theirs());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    assert!(
        !terminal.shown().contains("echo 20"),
        "{}",
        terminal.shown()
    );
    assert!(terminal.shown().contains("more lines; ? pages through all"));
    // The end is shown too: what is left out is in the middle.
    assert!(terminal.shown().contains("  │ echo 29"));
    assert!(terminal.shown().contains("SHA-256 of all of it: "));
    terminal.ours.write_all(b"?\n").expect("typed");
    terminal.wait_for("lines 1 to 22 of 36; ? shows the next page");
    terminal.ours.write_all(b"?\n").expect("typed");
    terminal.wait_for("  │ echo 20");
    terminal.ours.write_all(b"n\n").expect("typed");
    let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
    let shown = terminal.shown();
    assert_eq!(ran.code, Some(0), "{ran:?} {shown}");
    let is_forged = |line: &&str| line.starts_with("may I? ls") || line.ends_with("not? ");
    let forged: Vec<&str> = shown.lines().filter(is_forged).collect();
    assert!(
        forged.iter().all(|it| it.starts_with("  │ ")),
        "{forged:?} {shown}"
    );
    // What it said, and its command and its reason, twice.
    assert_eq!(shown.matches("  │ may I? ls").count(), 5, "{shown}");
}

#[test]
fn a_thread_that_asked_nobody_asks_where_somebody_is() {
    let bench = ExecHarness::new(WANTS);
    let ran = bench.run(&["--quiet", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut terminal = TestTerminal::open();
    let mut exec = bench.command(&["resume", "--last", "touch it"]);
    exec.stdin(terminal.theirs()).stderr(terminal.theirs());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    terminal.ours.write_all(b"y\n").expect("typed");
    let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(ran.code, Some(0), "{ran:?} {}", terminal.shown());
    assert!(bench.work.path().join("made").exists());
}

#[test]
fn nothing_is_written_behind_a_question() {
    let bench = ExecHarness::new(
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
    let mut exec = bench.command(&words);
    exec.stdin(terminal.theirs()).stderr(terminal.theirs());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n/…] ");
    eventually("the other command", || {
        bench.work.path().join("beside").exists().then_some(())
    });
    terminal.ours.write_all(b"y\n").expect("typed");
    let ran = ExecOutput::of(child.wait_with_output().expect("an end"));
    let shown = terminal.shown();
    assert_eq!(ran.code, Some(0), "{ran:?} {shown}");
    assert!(bench.work.path().join("made").exists());
    assert!(shown.contains("touch beside"), "{shown}");
    let (before, _) = shown.split_once("[y/a/n/…] y").expect("the answer");
    assert!(!before.contains("[y/a/n"), "{shown}");
}
