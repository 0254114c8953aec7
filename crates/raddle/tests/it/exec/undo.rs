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
    // Nothing is old yet.
    step(
        &["gc"],
        0,
        &["removed 0 KiB of copies", " of 1 workspace remain"],
    );
    step(&["diff", "--stat"], 0, &[" files changed"]);
    step(
        &["gc", "--older-than", "0"],
        0,
        &["; 0 KiB of 1 workspace remain"],
    );
    step(&["gc"], 0, &["; 0 KiB of 0 workspaces remain"]);
    step(&["diff", "--stat"], 1, &["has expired"]);
    step(&["thread", "delete", &thread, "--yes"], 0, &["deleted"]);
    assert_eq!(threads(), 0);
}

/// A journal that cannot be read does not mean that the threads of its copies were deleted: the user
/// would remove work.
#[test]
fn copies_of_deleted_threads_alone_are_listed() {
    let harness = ExecHarness::new("[[answer]]\nsteps = [{ text = 'Done.' }]");
    let work = harness.work.path();
    let ran = harness.run(&["--workspace", "copy", "do it"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let home = harness.home.path();
    let copies = std::path::PathBuf::from(format!("{}-copies", home.display()));
    let copy = fs::read_dir(&copies).expect("copies").next();
    let copy = copy.expect("a copy").expect("a copy").path();
    let copy = copy.display().to_string();
    let raddle = |words: &[&str]| {
        let mut raddle = command(home);
        raddle.args(words).current_dir(work).stdin(Stdio::null());
        ExecOutput::of(raddle.output().expect("the binary starts"))
    };
    let journal = home.join("threads/journal.sqlite");
    let aside = home.join("threads/aside");
    let thread = copy.rsplit('/').next().expect("an id");

    let kept = raddle(&["gc"]);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert!(!kept.out.contains(&copy), "{kept:?}");
    fs::rename(&journal, &aside).expect("moved");
    fs::create_dir(&journal).expect("a folder");
    let unknown = raddle(&["gc"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(!unknown.out.contains(&copy), "{unknown:?}");
    assert!(unknown.err.contains("cannot find out which"), "{unknown:?}");
    fs::remove_dir(&journal).expect("removed");
    fs::rename(&aside, &journal).expect("moved");
    let deleted = raddle(&["thread", "delete", thread, "--yes"]);
    assert!(deleted.err.contains("stays in"), "{deleted:?}");
    let left = raddle(&["gc"]);
    assert!(left.out.contains(&copy), "{left:?}");
    fs::remove_dir_all(copies).expect("removed");
}

/// A repeated undo goes back one turn each time, and a repeated redo goes forward until there is
/// newer work. A path to overwrite selects the turn that changed it.
#[test]
fn turns_are_undone_and_redone_one_after_the_other() {
    let call = |text: &str, file: &str| {
        let cmd = format!("echo {text} > {file}");
        format!("{{ call = 'exec_command', arguments = {{ cmd = '{cmd}', login = false }} }}")
    };
    let answers = [
        ("write 1", call("1", "file")),
        ("write 2", call("2", "file")),
        ("write 3", call("3", "other")),
    ];
    let answers = answers.map(|(prompt, call)| {
        format!("[[answer]]\nmatch = '{prompt}'\ntimes = 1\nsteps = [{call}]\n")
    });
    let script = answers.concat() + "[[answer]]\nsteps = [{ text = 'Done.' }]";
    let harness = ExecHarness::new(&script);
    let work = harness.work.path();
    let read = || fs::read_to_string(work.join("file")).expect("a file");
    let run = |words: &[&str]| {
        let ran = harness.run(words);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    let check = |steps: &[(&[&str], i32, &str)]| {
        for (words, code, expected) in steps {
            let mut raddle = command(harness.home.path());
            let words = [&["undo"], *words].concat();
            raddle.args(&words).current_dir(work).stdin(Stdio::null());
            let output = ExecOutput::of(raddle.output().expect("the binary starts"));
            assert_eq!(output.code, Some(*code), "{words:?}: {output:?}");
            assert_eq!(read(), *expected, "{words:?}");
        }
    };
    fs::write(work.join("file"), "0\n").expect("a file");
    run(&["--sandbox", "workspace-write", "write 1"]);
    run(&["resume", "--last", "write 2"]);
    check(&[
        (&["--yes"], 0, "1\n"),
        (&["--yes"], 0, "0\n"),
        (&["--yes"], 1, "0\n"),
        (&["--redo", "--yes"], 0, "1\n"),
        (&["--redo", "--yes"], 0, "2\n"),
        (&["--redo", "--yes"], 1, "2\n"),
        (&["--yes"], 0, "1\n"),
    ]);
    run(&["resume", "--last", "write 3"]);
    check(&[(&["--redo", "--yes"], 1, "1\n")]);
    fs::write(work.join("file"), "mine\n").expect("a file");
    check(&[
        (&["--overwrite", "unchanged", "--yes"], 1, "mine\n"),
        // The third turn did not change it, and the change of the second one is undone already.
        (&["--overwrite", "file", "--yes"], 0, "0\n"),
    ]);
}
