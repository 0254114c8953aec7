//! `raddle diff` and `raddle undo` on the changes of a run.

use super::*;

/// Each step: words of a command, its exit status, and texts in its output and on stderr.
#[test]
fn changes_of_a_command_are_printed_and_undone() {
    let cmd = "echo 1 > changed; rm deleted; mkdir d; echo x > d/new";
    let call =
        format!("{{ call = 'exec_command', arguments = {{ cmd = '{cmd}', login = false }} }}");
    let harness = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'do it'\nsteps = [{call}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]"
    ));
    let work = harness.work.path();
    fs::write(work.join("changed"), "one\n").expect("a file");
    fs::write(work.join("deleted"), "two\n").expect("a file");
    let ran = harness.run(&["--sandbox", "workspace-write", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let step = |words: &[&str], code: i32, texts: &[&str]| {
        let mut raddle = command(harness.home.path());
        raddle.args(words).current_dir(work).stdin(Stdio::null());
        let output = ExecOutput::of(raddle.output().expect("the binary starts"));
        assert_eq!(output.code, Some(code), "{words:?}: {output:?}");
        let all = format!("{}{}", output.out, output.err);
        for text in texts {
            assert!(all.contains(text), "{words:?}: {output:?}");
        }
    };
    let after = "1\n";
    step(
        &["diff"],
        0,
        &["-one\n+1\n", "deleted file mode", "+++ b/d/new"],
    );
    step(
        &["diff", "--stat"],
        0,
        &[" 3 files changed", "changed | +1 -1 | tool"],
    );
    step(
        &["undo", "--preview"],
        0,
        &["changed:  changed", "created:  deleted", "deleted:  d/new"],
    );
    assert_eq!(
        fs::read_to_string(work.join("changed")).expect("a file"),
        after
    );
    step(&["undo", "--yes"], 0, &["restored 3 files"]);
    assert_eq!(
        fs::read_to_string(work.join("changed")).expect("a file"),
        "one\n"
    );
    assert_eq!(
        fs::read_to_string(work.join("deleted")).expect("a file"),
        "two\n"
    );
    assert!(!work.join("d").exists());
    step(&["undo", "--yes"], 1, &["nothing to undo"]);
    step(&["undo", "--redo", "--yes"], 0, &["restored 3 files"]);
    assert_eq!(
        fs::read_to_string(work.join("changed")).expect("a file"),
        after
    );
    fs::write(work.join("changed"), "mine\n").expect("a file");
    step(
        &["undo", "--yes"],
        1,
        &["conflict: changed stays as it is", "restored 2 files"],
    );
    assert_eq!(
        fs::read_to_string(work.join("changed")).expect("a file"),
        "mine\n"
    );
    let logs = harness.home.path().join("checkpoints/threads");
    let threads = || fs::read_dir(&logs).expect("the logs").count();
    assert_eq!(threads(), 1);
    let log = fs::read_dir(&logs)
        .expect("the logs")
        .next()
        .expect("a log");
    let name = log.expect("a log").path();
    let thread = name
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    step(&["thread", "delete", &thread, "--yes"], 0, &["deleted"]);
    assert_eq!(threads(), 0);
}

/// A repeated undo goes back one turn each time, and a repeated redo goes forward.
#[test]
fn turns_are_undone_and_redone_one_after_the_other() {
    let call = |text: &str| {
        format!(
            "{{ call = 'exec_command', arguments = {{ cmd = 'echo {text} > file', login = false }} }}"
        )
    };
    let harness = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'write 1'\ntimes = 1\nsteps = [{}]\n\
         [[answer]]\nmatch = 'write 2'\ntimes = 1\nsteps = [{}]\n\
         [[answer]]\nsteps = [{{ text = 'Done.' }}]",
        call("1"),
        call("2")
    ));
    let work = harness.work.path();
    fs::write(work.join("file"), "0\n").expect("a file");
    let workspace = ["--sandbox", "workspace-write"];
    for words in [&["write 1"][..], &["resume", "--last", "write 2"]] {
        let words = match words {
            [word] => [&workspace[..], &[word]].concat(),
            words => words.to_vec(),
        };
        let ran = harness.run(&words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    for (words, code, expected) in [
        (&["undo", "--yes"][..], 0, "1\n"),
        (&["undo", "--yes"], 0, "0\n"),
        (&["undo", "--yes"], 1, "0\n"),
        (&["undo", "--redo", "--yes"], 0, "1\n"),
        (&["undo", "--redo", "--yes"], 0, "2\n"),
        (&["undo", "--redo", "--yes"], 1, "2\n"),
        (&["undo", "--yes"], 0, "1\n"),
    ] {
        let mut raddle = command(harness.home.path());
        raddle.args(words).current_dir(work).stdin(Stdio::null());
        let output = ExecOutput::of(raddle.output().expect("the binary starts"));
        assert_eq!(output.code, Some(code), "{words:?}: {output:?}");
        let file = fs::read_to_string(work.join("file")).expect("a file");
        assert_eq!(file, expected, "{words:?}");
    }
}
