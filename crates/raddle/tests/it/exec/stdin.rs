//! stdin is read only on request.

use std::io::Write;
use std::process::{Command, Stdio};

use super::*;

const SCHEMA: &str =
    r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
const ANSWER: &str = r#"{"n": 7}"#;

#[test]
fn stdin_is_ignored_with_a_prompt() {
    let harness = ExecHarness::new(&script_with_answer(ANSWER));
    let schema = write(harness.work.path(), "schema.json", SCHEMA);
    for with_schema in [false, true] {
        let mut words = vec!["--quiet", "how many?"];
        if with_schema {
            words.extend(["--output-schema", &schema]);
        }
        let mut results = Vec::new();
        for stdin in ["open", "closed", "empty"] {
            let mut exec = harness.command(&words);
            if stdin == "closed" {
                exec = under_a_shell(&exec, "exec \"$0\" \"$@\" <&-");
            }
            if stdin != "empty" {
                exec.stdin(Stdio::piped());
            }
            let mut child = exec.stdout(Stdio::piped()).spawn().expect("started");
            // Kept open, without any data.
            let open_stdin = child.stdin.take();
            let output = ExecOutput::of(child.wait_with_output().expect("an end"));
            drop(open_stdin);
            results.push((stdin, output.code, output.out, output.err));
        }
        for (stdin, code, out, err) in results {
            assert_eq!(
                (code, out.as_str(), err.as_str()),
                (Some(0), "{\"n\": 7}\n", ""),
                "{stdin} {with_schema}"
            );
        }
    }
}

#[test]
fn stdin_is_the_prompt_on_request() {
    let harness = ExecHarness::new("");
    for words in [
        &["-"][..],
        &["--json"],
        &["--experimental-json"],
        &["--quiet", "-"],
    ] {
        let mut child = harness
            .command(words)
            .stdin(Stdio::piped())
            .spawn()
            .expect("started");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(b"count the threads").expect("written");
        drop(stdin);
        let output = ExecOutput::of(child.wait_with_output().expect("an end"));
        assert_eq!(output.code, Some(0), "{words:?} {output:?}");
        let request = harness
            .mock
            .request_bodies()
            .pop()
            .expect("a call")
            .to_string();
        assert!(request.contains("count the threads"), "{words:?} {request}");
    }
}

#[test]
fn invalid_arguments_are_rejected_in_one_line() {
    let harness = ExecHarness::new("");
    let work = harness.work.path();
    let no_schema = write(work, "no.json", r#"{"type": "text"}"#);
    let thread = "019a0000-0000-7000-8000-000000000001";
    for (words, expected) in [
        (&[][..], "give a prompt, or - to read it from stdin"),
        (&["-"], "the prompt is empty"),
        (&["--json"], "the prompt is empty"),
        (&["--unattended", "ask", "x"], "needs a terminal"),
        (
            &["--output-schema", "nowhere.json", "x"],
            "cannot read --output-schema nowhere.json",
        ),
        (
            &["--output-schema", "/dev/zero", "x"],
            "it has more than 1048576 bytes",
        ),
        (
            &["--output-schema", &no_schema, "x"],
            "/type cannot be \"text\"",
        ),
        (
            &["--image", "nowhere.png", "x"],
            "cannot read --image nowhere.png",
        ),
        (&["--cd", "nowhere", "x"], "cannot work in nowhere"),
        (
            &["--remote", "http://x", "x"],
            "use ws://, unix://PATH or unix://",
        ),
        (&["resume", "x"], "`x` is not a thread id"),
        (&["resume"], "name a thread"),
        (
            &["resume", "--last", "x", "y"],
            "with --last there is no thread's id",
        ),
        (&["x", "resume", thread], "after `resume`"),
        (
            &["-o", "nowhere/answer", "x"],
            "cannot write --output-last-message nowhere/answer; name another path",
        ),
        (&["-o", "answer", "-"], "the prompt is empty"),
        (
            &["-o", ".", "x"],
            "cannot write --output-last-message .; name another path",
        ),
        (
            &["-c", "approval_policy=sometimes", "x"],
            "approval_policy cannot be \"sometimes\"; use untrusted, on-request, never",
        ),
        (
            &["resume", "--last", "-c", "sandbox_mode=none", "x"],
            "sandbox_mode cannot be \"none\"; use read-only",
        ),
        (
            &["--yolo", "resume", "--last", "--sandbox", "read-only", "x"],
            "and --sandbox contradict each other",
        ),
        (
            &["-s", "read-only", "resume", "--last", "--yolo", "x"],
            "and --sandbox contradict each other",
        ),
        (
            &["--yolo", "resume", "--last", "--unattended", "deny", "x"],
            "and --unattended contradict each other",
        ),
        (
            &["--yolo", "-c", "approval_policy=on-request", "x"],
            "and -c approval_policy contradict each other",
        ),
        (
            &[
                "-c",
                "sandbox_mode=read-only",
                "resume",
                "--last",
                "--yolo",
                "x",
            ],
            "and -c sandbox_mode contradict each other",
        ),
        (
            &["--yolo", "-c", "default_permissions=:read-only", "x"],
            "and -c default_permissions contradict each other",
        ),
        (
            &["--yolo", "-c", "approval_policy.granular.rules=true", "x"],
            "and -c approval_policy contradict each other",
        ),
        (
            &[
                "--yolo",
                "-c",
                "sandbox_workspace_write.network_access=false",
                "x",
            ],
            "and -c settings of a sandbox contradict each other",
        ),
        (
            &["--yolo", "-c", "sandbox_network.allow=[]", "x"],
            "and -c settings of a sandbox contradict each other",
        ),
        (
            &["--yolo", "-c", "approvals_reviewer=auto_review", "x"],
            "and -c approvals_reviewer contradict each other",
        ),
        (
            &["-s", "workspace-write", "-c", "sandbox_mode=read-only", "x"],
            "--sandbox and -c sandbox_mode contradict each other",
        ),
        (
            &["--full-auto", "-c", "sandbox_mode=read-only", "x"],
            "--full-auto and -c sandbox_mode contradict each other",
        ),
        (
            &["-c", "budget.turn.tokens=1", "--budget", "tokens=9", "x"],
            "--budget and -c budget.turn contradict each other",
        ),
        (
            &["--full-auto", "-c", "default_permissions=:read-only", "x"],
            "--full-auto and -c default_permissions contradict each other",
        ),
        (
            &[
                "-s",
                "danger-full-access",
                "-c",
                "default_permissions=mine",
                "x",
            ],
            "--sandbox and -c default_permissions contradict each other",
        ),
        (
            &["--full-auto", "resume", "--last", "-s", "read-only", "x"],
            "--full-auto and --sandbox contradict each other",
        ),
    ] {
        let output = harness.run(words);
        assert_eq!(
            (output.code, output.out.as_str()),
            (Some(2), ""),
            "{words:?} {output:?}"
        );
        assert_eq!(output.err.lines().count(), 1, "{words:?} {output:?}");
        assert!(output.err.contains(expected), "{words:?} {output:?}");
    }
    assert_eq!(harness.mock.request_bodies().len(), 0);
    // The failed runs left no files.
    assert_eq!(fs::read_dir(work).expect("a folder").count(), 1);
}

#[test]
fn a_prompt_is_utf_8() {
    let harness = ExecHarness::new("");
    for (prompt, code, expected) in [
        (&b"gr\xfc\xdfe"[..], 2, "wrong byte after the first 2;"),
        (b"\xef\xbb\xbfcount them", 0, ""),
    ] {
        let mut exec = harness.command(&["--quiet", "-"]);
        let mut child = exec.stdin(Stdio::piped()).spawn().expect("started");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(prompt).expect("written");
        drop(stdin);
        let output = ExecOutput::of(child.wait_with_output().expect("an end"));
        assert_eq!(output.code, Some(code), "{output:?}");
        assert!(output.err.contains(expected), "{output:?}");
    }
    let request = harness
        .mock
        .request_bodies()
        .pop()
        .expect("a call")
        .to_string();
    assert!(request.contains("\"count them\""), "{request}");
}

/// The same command, started by a shell with this script.
fn under_a_shell(command: &Command, script: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", script])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}
