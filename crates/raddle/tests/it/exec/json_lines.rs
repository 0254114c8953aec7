//! The output of a run, and its exit status.

use std::io::Write;

use super::*;

#[test]
fn the_answer_is_on_stdout_and_progress_on_stderr() {
    let harness = ExecHarness::new("");
    let last = harness.work.path().join("last.txt");
    let last = last.display().to_string();
    let output = harness.run(&[
        "--output-last-message",
        &last,
        "MOCK text say=\"I am done.\"",
    ]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), "I am done.\n"),
        "{output:?}"
    );
    assert!(output.err.starts_with("thread "), "{output:?}");
    assert_eq!(fs::read_to_string(last).expect("the file"), "I am done.");
}

#[test]
fn an_answer_that_cannot_be_stored_is_still_printed() {
    let harness = ExecHarness::new(
        "[[answer]]\nmatch = 'tidy'\nsteps = [{ call = 'exec_command', arguments = { cmd = 'rmdir kept' } }]\n\
         [[answer]]\nsteps = [{ text = 'It is tidy.' }]\n",
    );
    fs::create_dir(harness.work.path().join("kept")).expect("a folder");
    let output = harness.run(&[
        "--quiet",
        "--sandbox",
        "danger-full-access",
        "-o",
        "kept/answer",
        "tidy",
    ]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(1), "It is tidy.\n"),
        "{output:?}"
    );
    assert!(
        output
            .err
            .contains("cannot write the answer to kept/answer"),
        "{output:?}"
    );
}

/// The model can write the workspace while the turn runs, and the answer is written outside the
/// sandbox.
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
        let harness = ExecHarness::new(&format!(
            "[[answer]]\nmatch = 'go'\nsteps = [{{ call = 'exec_command', arguments = {{ cmd = '{make}' }} }}]\n\
             [[answer]]\nsteps = [{{ text = 'Done.' }}]\n"
        ));
        fs::create_dir(harness.work.path().join("sub")).expect("a folder");
        fs::write(harness.work.path().join("answer"), "old").expect("a file");
        let (file, answer_path) = match make.contains("sub") {
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
        let output = harness.run(&words);
        assert_eq!(output.code, Some(0), "{make}: {output:?}");
        assert_eq!(fs::read_to_string(&other).expect("it"), "theirs", "{make}");
        let answer_path = harness.work.path().join(answer_path);
        let is_link = answer_path.is_symlink();
        let answer = fs::read_to_string(answer_path).expect("the answer");
        assert_eq!((is_link, answer.as_str()), (false, "Done."), "{make}");
    }
}

/// An existing file keeps its mode, and a file that is not regular is written in place.
#[test]
fn the_answer_is_written_to_an_existing_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let harness = ExecHarness::new("");
    let file = harness.work.path().join("answer");
    fs::write(&file, "something longer").expect("a file");
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(&file, mode).expect("its mode");
    let say = "MOCK text say=\"Done.\"";
    let output = harness.run(&["--quiet", "-o", "answer", say]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), "Done.");
    let mode = fs::metadata(&file).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let names = fs::read_dir(harness.work.path())
        .expect("the folder")
        .count();
    assert_eq!(names, 1, "nothing is left beside it");
    let output = harness.run(&["--quiet", "-o", "/dev/stderr", say]);
    assert_eq!(
        (output.code, output.err.as_str()),
        (Some(0), "Done."),
        "{output:?}"
    );
}

#[test]
fn its_threads_are_those_of_exec() {
    let harness = ExecHarness::new("");
    let events = harness.run(&["--json", "x"]).events();
    let thread = events[0]["thread_id"].as_str().expect("an id");
    let mut export = command(harness.home.path());
    export.args(["thread", "export", thread]);
    let records = ExecOutput::of(export.output().expect("started"));
    assert!(records.out.contains(r#""source":"exec""#), "{records:?}");
}

#[test]
fn a_failing_turn_is_one_clear_line_and_a_status() {
    let harness = ExecHarness::new("");
    for (marker, status_code) in [
        ("refused", "403"),
        ("unauthorized", "401"),
        ("quota", "429"),
    ] {
        let output = harness.run(&["--quiet", &format!("MOCK {marker}")]);
        assert_eq!(
            (output.code, output.out.as_str()),
            (Some(1), ""),
            "{marker} {output:?}"
        );
        let lines: Vec<&str> = output.err.lines().collect();
        assert_eq!(lines.len(), 1, "{marker} {output:?}");
        assert!(
            lines[0].starts_with("raddle: the turn failed: "),
            "{marker} {output:?}"
        );
        assert!(lines[0].contains(status_code), "{marker} {output:?}");

        let output = harness.run(&["--json", &format!("MOCK {marker}")]);
        assert_eq!(output.code, Some(1), "{marker} {output:?}");
        let events = output.events();
        let kinds: Vec<&str> = events.iter().filter_map(|it| it["type"].as_str()).collect();
        let expected = ["thread.started", "turn.started", "error", "turn.failed"];
        assert_eq!(kinds, expected, "{marker}");
    }
}

#[test]
fn no_model_is_a_clear_line() {
    let home = TempDir::new().expect("a home");
    let mut exec = command(home.path());
    exec.args(["exec", "--quiet", "x"]).stdin(Stdio::null());
    let output = ExecOutput::of(exec.output().expect("started"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.err.lines().count(), 1, "{output:?}");
    assert!(output.err.contains("model_provider"), "{output:?}");
}

#[test]
fn an_answer_that_does_not_fit_has_a_status_of_its_own() {
    let harness = ExecHarness::new(&script_with_answer("[1, 2]"));
    let schema = write(
        harness.work.path(),
        "schema.json",
        r#"{"type": "array", "items": {"type": "string"}}"#,
    );
    for words in [&["--quiet"][..], &["--json"]] {
        let mut words = words.to_vec();
        words.extend(["--output-schema", &schema, "x"]);
        let output = harness.run(&words);
        assert_eq!(output.code, Some(3), "{output:?}");
        assert_eq!(
            output.err,
            "raddle: the answer does not fit the schema: /0 must be string\n"
        );
    }
    let request = harness.mock.request_bodies().pop().expect("a call");
    assert_eq!(
        request["text"]["format"]["schema"]["type"], "array",
        "{request}"
    );
}

#[test]
fn nothing_but_events_is_on_stdout_at_any_level() {
    let harness = ExecHarness::new("");
    for level in ["off", "error", "debug", "trace"] {
        for format in ["text", "json"] {
            let mut exec = harness.command(&["--json", "MOCK text n=50 size=8"]);
            exec.env("RADDLE_LOG", level)
                .env("RADDLE_LOG_FORMAT", format);
            exec.env("RUST_LOG", level);
            let output = ExecOutput::of(exec.output().expect("started"));
            assert_eq!(output.code, Some(0), "{level} {output:?}");
            let events = output.events();
            assert_eq!(events.first().expect("events")["type"], "thread.started");
            assert_eq!(events.last().expect("events")["type"], "turn.completed");
            let is_silent = output.err.is_empty();
            assert_eq!(
                is_silent,
                ["off", "error"].contains(&level),
                "{level} {}",
                output.err
            );
        }
    }
}

#[test]
fn a_thread_goes_on() {
    let harness = ExecHarness::new("");
    let first = harness.run(&["--json", "one"]).events();
    let thread = first[0]["thread_id"].as_str().expect("an id").to_owned();
    for words in [
        &["resume", &thread, "two"][..],
        &["resume", "--last", "three"],
    ] {
        let output = harness.run(&[&["--json"], words].concat());
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(output.events()[0]["thread_id"], thread.as_str());
    }
    let request = harness.mock.request_bodies().pop().expect("a call")["input"].to_string();
    for text in ["one", "two", "three"] {
        assert!(request.contains(text), "{request}");
    }
    let missing = harness.run(&[
        "--quiet",
        "resume",
        "019a0000-0000-7000-8000-000000000001",
        "x",
    ]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert_eq!(missing.err.lines().count(), 1, "{missing:?}");
    // Another folder has no threads.
    let other = TempDir::new().expect("a folder");
    let other = other.path().display().to_string();
    let output = harness.run(&["--quiet", "--cd", &other, "resume", "--last", "x"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.err.contains("no thread"), "{output:?}");
}

#[test]
fn an_archived_thread_goes_on() {
    let harness = ExecHarness::new("");
    let first = harness.run(&["--json", "one"]).events();
    let thread = first[0]["thread_id"].as_str().expect("an id").to_owned();
    archive(&harness, &thread);
    let output = harness.run(&["resume", &thread, "two"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let notice = "the thread was archived, and is listed again";
    assert!(output.err.contains(notice), "{output:?}");
    let output = harness.run(&["--json", "resume", "--last", "three"]);
    assert_eq!(output.events()[0]["thread_id"], thread.as_str());
}

/// Archives a thread with a server on the home.
fn archive(harness: &ExecHarness, thread: &str) {
    let mut server = command(harness.home.path());
    server.arg("app-server").stderr(Stdio::null());
    let mut server = server.spawn().expect("the binary starts");
    let mut stdin = server.stdin.take().expect("stdin");
    let client = serde_json::json!({"clientInfo": {"name": "test", "version": "1"}});
    for message in [
        serde_json::json!({"id": 1, "method": "initialize", "params": client}),
        serde_json::json!({"method": "initialized"}),
        serde_json::json!({"id": 2, "method": "thread/archive", "params": {"threadId": thread}}),
    ] {
        writeln!(stdin, "{message}").expect("it is sent");
    }
    let lines = BufReader::new(server.stdout.take().expect("stdout")).lines();
    let mut lines = lines.map(|it| it.expect("a line"));
    assert!(lines.any(|it| it.contains("thread/archived")));
    drop(stdin);
    server.wait().expect("it ends");
}

#[test]
fn a_closed_stdout_ends_the_run_quietly() {
    let harness = ExecHarness::new("");
    let mut running = harness.started(&["--json", "MOCK text n=20 size=8 gap_ms=20"]);
    running.until("turn.started");
    drop(running.lines);
    let output = running.child.wait_with_output().expect("an end");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    // As shells report a program that SIGPIPE ended.
    assert_eq!(output.status.code(), Some(141));
}
