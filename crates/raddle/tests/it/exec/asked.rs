//! Questions: on a terminal, and where nobody can be asked.

use std::io::Write;

use super::*;
use crate::support::terminal::Terminal;

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
        let bench = Bench::new(WANTS);
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
        let bench = Bench::new(WANTS);
        let mut terminal = Terminal::open();
        let mut exec = bench.command(&["-c", "approval_policy=on-request", "touch it"]);
        exec.stdin(terminal.theirs()).stderr(terminal.theirs());
        let child = exec.spawn().expect("started");
        terminal.wait_for("touch made");
        terminal.wait_for("[y/a/n");
        terminal.ours.write_all(typed.as_bytes()).expect("typed");
        let ran = Ran::of(child.wait_with_output().expect("an end"));
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
    let bench = Bench::new(WANTS);
    let mut terminal = Terminal::open();
    let theirs = terminal.theirs();
    terminal.ours.write_all(b"y\n").expect("typed");
    let mut exec = bench.command(&["-c", "approval_policy=on-request", "touch it"]);
    exec.stdin(theirs).stderr(terminal.theirs());
    let child = exec.spawn().expect("started");
    terminal.wait_for("[y/a/n");
    terminal.ours.write_all(b"n\n").expect("typed");
    let ran = Ran::of(child.wait_with_output().expect("an end"));
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
        let bench = Bench::new(&script);
        let mut terminal = Terminal::open();
        let mut exec = bench.command(&["-c", "approval_policy=on-request", "touch it"]);
        exec.stdin(terminal.theirs()).stderr(terminal.theirs());
        let child = exec.spawn().expect("started");
        terminal.wait_for("[y/a/n");
        terminal.ours.write_all(b"n\n").expect("typed");
        let ran = Ran::of(child.wait_with_output().expect("an end"));
        let shown = terminal.shown();
        assert_eq!(ran.code, Some(0), "{ran:?} {shown}");
        for line in lines {
            assert!(shown.contains(&line), "{line} in {shown}");
        }
    }
}
