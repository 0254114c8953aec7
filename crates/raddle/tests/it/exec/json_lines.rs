//! What is printed, where, and how it ends.

use super::*;

#[test]
fn the_answer_is_on_stdout_and_progress_on_stderr() {
    let bench = ExecHarness::new("");
    let last = bench.work.path().join("last.txt");
    let last = last.display().to_string();
    let ran = bench.run(&[
        "--output-last-message",
        &last,
        "MOCK text say=\"I am done.\"",
    ]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "I am done.\n"),
        "{ran:?}"
    );
    assert!(ran.err.starts_with("thread "), "{ran:?}");
    assert_eq!(fs::read_to_string(last).expect("the file"), "I am done.");
}

#[test]
fn an_answer_that_cannot_be_kept_is_printed_all_the_same() {
    let bench = ExecHarness::new(
        "[[answer]]\nmatch = 'tidy'\nsteps = [{ call = 'exec_command', arguments = { cmd = 'rmdir kept' } }]\n\
         [[answer]]\nsteps = [{ text = 'It is tidy.' }]\n",
    );
    fs::create_dir(bench.work.path().join("kept")).expect("a folder");
    let ran = bench.run(&[
        "--quiet",
        "--sandbox",
        "danger-full-access",
        "-o",
        "kept/answer",
        "tidy",
    ]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(1), "It is tidy.\n"),
        "{ran:?}"
    );
    assert!(
        ran.err.contains("cannot write the answer to kept/answer"),
        "{ran:?}"
    );
}

/// The model writes the workspace while the turn runs, and the answer is written outside the sandbox.
#[test]
fn the_answer_is_not_written_through_a_link() {
    for make in [
        "ln -sf {other} answer",
        "rm answer; ln -s {other} answer",
        "mv sub old; ln -s {folder} sub",
    ] {
        let outside = TempDir::new().expect("a folder");
        let other = outside.path().join("answer");
        fs::write(&other, "theirs").expect("a file");
        let make = make
            .replace("{other}", &other.display().to_string())
            .replace("{folder}", &outside.path().display().to_string());
        let bench = ExecHarness::new(&format!(
            "[[answer]]\nmatch = 'go'\nsteps = [{{ call = 'exec_command', arguments = {{ cmd = '{make}' }} }}]\n\
             [[answer]]\nsteps = [{{ text = 'Done.' }}]\n"
        ));
        fs::create_dir(bench.work.path().join("sub")).expect("a folder");
        fs::write(bench.work.path().join("answer"), "old").expect("a file");
        let (file, kept) = match make.contains("sub") {
            true => ("sub/answer", "old/answer"),
            false => ("answer", "answer"),
        };
        let words = [
            "--quiet",
            "--sandbox",
            "danger-full-access",
            "-o",
            file,
            "go",
        ];
        let ran = bench.run(&words);
        assert_eq!(ran.code, Some(0), "{make}: {ran:?}");
        assert_eq!(fs::read_to_string(&other).expect("it"), "theirs", "{make}");
        let kept = bench.work.path().join(kept);
        let is_link = kept.is_symlink();
        let kept = fs::read_to_string(kept).expect("the answer");
        assert_eq!((is_link, kept.as_str()), (false, "Done."), "{make}");
    }
}

/// What stands there keeps its mode, and what is no ordinary file is written to as it is.
#[test]
fn the_answer_is_written_to_what_is_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = ExecHarness::new("");
    let file = bench.work.path().join("answer");
    fs::write(&file, "something longer").expect("a file");
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(&file, mode).expect("its mode");
    let say = "MOCK text say=\"Done.\"";
    let ran = bench.run(&["--quiet", "-o", "answer", say]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "Done.");
    let mode = fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let names = fs::read_dir(bench.work.path()).expect("the folder").count();
    assert_eq!(names, 1, "nothing is left beside it");
    let ran = bench.run(&["--quiet", "-o", "/dev/stderr", say]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), "Done."), "{ran:?}");
}

#[test]
fn its_threads_are_those_of_exec() {
    let bench = ExecHarness::new("");
    let events = bench.run(&["--json", "x"]).events();
    let thread = events[0]["thread_id"].as_str().expect("an id");
    let mut export = command(bench.home.path());
    export.args(["thread", "export", thread]);
    let records = ExecOutput::of(export.output().expect("started"));
    assert!(records.out.contains(r#""source":"exec""#), "{records:?}");
}

#[test]
fn a_failing_turn_is_one_clear_line_and_a_status() {
    let bench = ExecHarness::new("");
    for (marker, said) in [
        ("refused", "403"),
        ("unauthorized", "401"),
        ("quota", "429"),
    ] {
        let ran = bench.run(&["--quiet", &format!("MOCK {marker}")]);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(1), ""),
            "{marker} {ran:?}"
        );
        let lines: Vec<&str> = ran.err.lines().collect();
        assert_eq!(lines.len(), 1, "{marker} {ran:?}");
        assert!(
            lines[0].starts_with("raddle: the turn failed: "),
            "{marker} {ran:?}"
        );
        assert!(lines[0].contains(said), "{marker} {ran:?}");

        let ran = bench.run(&["--json", &format!("MOCK {marker}")]);
        assert_eq!(ran.code, Some(1), "{marker} {ran:?}");
        let events = ran.events();
        let kinds: Vec<&str> = events.iter().filter_map(|it| it["type"].as_str()).collect();
        let wanted = ["thread.started", "turn.started", "error", "turn.failed"];
        assert_eq!(kinds, wanted, "{marker}");
    }
}

#[test]
fn no_model_is_a_clear_line() {
    let home = TempDir::new().expect("a home");
    let mut exec = command(home.path());
    exec.args(["exec", "--quiet", "x"]).stdin(Stdio::null());
    let ran = ExecOutput::of(exec.output().expect("started"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    assert!(ran.err.contains("model_provider"), "{ran:?}");
}

#[test]
fn an_answer_that_does_not_fit_has_a_status_of_its_own() {
    let bench = ExecHarness::new(&says("[1, 2]"));
    let schema = write(
        bench.work.path(),
        "schema.json",
        r#"{"type": "array", "items": {"type": "string"}}"#,
    );
    for words in [&["--quiet"][..], &["--json"]] {
        let mut words = words.to_vec();
        words.extend(["--output-schema", &schema, "x"]);
        let ran = bench.run(&words);
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert_eq!(
            ran.err,
            "raddle: the answer does not fit the schema: /0 must be string\n"
        );
    }
    let asked = bench.mock.asked().pop().expect("a call");
    assert_eq!(
        asked["text"]["format"]["schema"]["type"], "array",
        "{asked}"
    );
}

#[test]
fn nothing_but_events_is_on_stdout_at_any_level() {
    let bench = ExecHarness::new("");
    for level in ["off", "error", "debug", "trace"] {
        for format in ["text", "json"] {
            let mut exec = bench.command(&["--json", "MOCK text n=50 size=8"]);
            exec.env("RADDLE_LOG", level)
                .env("RADDLE_LOG_FORMAT", format);
            exec.env("RUST_LOG", level);
            let ran = ExecOutput::of(exec.output().expect("started"));
            assert_eq!(ran.code, Some(0), "{level} {ran:?}");
            let events = ran.events();
            assert_eq!(events.first().expect("events")["type"], "thread.started");
            assert_eq!(events.last().expect("events")["type"], "turn.completed");
            let is_silent = ran.err.is_empty();
            assert_eq!(
                is_silent,
                ["off", "error"].contains(&level),
                "{level} {}",
                ran.err
            );
        }
    }
}

#[test]
fn a_thread_goes_on() {
    let bench = ExecHarness::new("");
    let first = bench.run(&["--json", "one"]).events();
    let thread = first[0]["thread_id"].as_str().expect("an id").to_owned();
    for words in [
        &["resume", &thread, "two"][..],
        &["resume", "--last", "three"],
    ] {
        let ran = bench.run(&[&["--json"], words].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.events()[0]["thread_id"], thread.as_str());
    }
    let asked = bench.mock.asked().pop().expect("a call")["input"].to_string();
    for said in ["one", "two", "three"] {
        assert!(asked.contains(said), "{asked}");
    }
    let nowhere = bench.run(&[
        "--quiet",
        "resume",
        "019a0000-0000-7000-8000-000000000001",
        "x",
    ]);
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    assert_eq!(nowhere.err.lines().count(), 1, "{nowhere:?}");
    // Another folder has no threads.
    let other = TempDir::new().expect("a folder");
    let other = other.path().display().to_string();
    let ran = bench.run(&["--quiet", "--cd", &other, "resume", "--last", "x"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("no thread"), "{ran:?}");
}

#[test]
fn whoever_stops_reading_ends_it_quietly() {
    let bench = ExecHarness::new("");
    let mut running = bench.started(&["--json", "MOCK text n=20 size=8 gap_ms=20"]);
    running.until("turn.started");
    drop(running.lines);
    let output = running.child.wait_with_output().expect("an end");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // As a shell says it of a program that SIGPIPE ended.
    assert_eq!(output.status.code(), Some(141));
}
