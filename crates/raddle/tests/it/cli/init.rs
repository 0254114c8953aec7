//! `raddle init`: a first configuration, with and without a terminal.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use super::CliHome;
use crate::support::terminal::TestTerminal;

#[test]
fn options_answer_every_question() {
    let own = ["--base-url", "http://127.0.0.1:8080/v1"];
    for (words, wanted, doctor) in [
        (
            &["--model", "openai/gpt-5", "--yes"][..],
            "model = \"openai/gpt-5\"\napproval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n",
            "OPENAI_API_KEY, which is not set",
        ),
        (
            &[
                "--model",
                "anthropic/claude",
                "--key-env",
                "MINE",
                "--approval",
                "read",
            ],
            "model = \"anthropic/claude\"\napproval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n\
             [model_providers.anthropic]\nenv_key = \"MINE\"\n",
            "MINE, which is not set",
        ),
        (
            &[
                &[
                    "--model",
                    "mine/m",
                    "--key-file",
                    "/nowhere/key",
                    "--approval",
                    "all",
                ][..],
                &own,
            ]
            .concat(),
            "model = \"mine/m\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
             [model_providers.mine]\nbase_url = \"http://127.0.0.1:8080/v1\"\nwire_api = \"chat\"\nkey_file = \"/nowhere/key\"\n",
            "cannot be read from /nowhere/key",
        ),
        // A well-known name at another address speaks as it always does, and gets no key.
        (
            &[&["--model", "anthropic/claude"][..], &own].concat(),
            "model = \"anthropic/claude\"\napproval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n\
             [model_providers.anthropic]\nbase_url = \"http://127.0.0.1:8080/v1\"\nwire_api = \"messages\"\n",
            "takes no key",
        ),
        (
            &["--model", "llamacpp/any"],
            "model = \"llamacpp/any\"\napproval_policy = \"on-request\"\nsandbox_mode = \"workspace-write\"\n",
            "takes no key",
        ),
    ] {
        let place = CliHome::new();
        let went = place.run(&[&["init"][..], words].concat());
        assert_eq!(
            (went.code, went.out.as_str()),
            (Some(0), ""),
            "{}",
            went.err
        );
        assert!(
            went.err.contains("wrote HOME/config.toml\n"),
            "{}",
            went.err
        );
        assert!(went.err.contains("raddle doctor"), "{}", went.err);
        let text = place.text();
        let said: String = text
            .lines()
            .filter(|it| !it.is_empty() && !it.starts_with('#'))
            .map(|it| format!("{it}\n"))
            .collect();
        assert_eq!(said, wanted);
        assert!(
            text.starts_with("#:schema ./config.schema.json\n"),
            "{text}"
        );
        assert!(place.home.path().join("config.schema.json").exists());
        let mode = fs::metadata(place.config())
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // It is a configuration without anything odd.
        assert_eq!(place.run(&["config", "list"]).err, "");
        assert!(place.run(&["doctor"]).out.contains(doctor), "{words:?}");
    }
}

/// Each question is asked again until its answer can be used.
#[test]
fn a_terminal_is_asked_three_questions() {
    let mut place = CliHome::new();
    place.set("OPENAI_API_KEY", "sekret");
    let mut terminal = TestTerminal::open();
    let mut command = place.command(&["init"]);
    command.stdin(terminal.theirs()).stderr(terminal.theirs());
    let child = command.spawn().expect("it runs");
    for (question, answer) in [
        ("PROVIDER/MODEL: ", "gpt"),
        ("`gpt` must be PROVIDER/MODEL", "anthropic/claude"),
        ("variable or path [ANTHROPIC_API_KEY]: ", "sk-sekret-1"),
        ("is not written into the configuration", "~/keys/claude"),
        ("read, workspace or all [workspace]: ", "none"),
        ("`none` is none of read, workspace and all", ""),
    ] {
        terminal.wait_for(question);
        let line = format!("{answer}\n");
        terminal.ours.write_all(line.as_bytes()).expect("typed");
    }
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{}", terminal.shown());
    terminal.wait_for("There are keys here for: openai.");
    terminal.wait_for("wrote ");
    let text = place.text();
    for line in [
        "model = \"anthropic/claude\"\n",
        "sandbox_mode = \"workspace-write\"\n",
        "[model_providers.anthropic]\n",
        "key_file = \"~/keys/claude\"\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("sekret"), "{text}");
}

/// Whoever leaves in the middle leaves nothing behind.
#[test]
fn a_terminal_that_says_no_more_ends_it() {
    let place = CliHome::new();
    let mut terminal = TestTerminal::open();
    let mut command = place.command(&["init"]);
    command.stdin(terminal.theirs()).stderr(terminal.theirs());
    let child = command.spawn().expect("it runs");
    terminal.wait_for("PROVIDER/MODEL: ");
    terminal.ours.write_all(b"\x04").expect("typed");
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(1), "{}", terminal.shown());
    terminal.wait_for("no answer came; nothing was written");
    assert!(!place.config().exists());
}

/// A name that looks like a key is one if nothing is set by it.
#[test]
fn a_variable_with_small_letters_must_be_set() {
    let words = ["init", "--model", "openai/m", "--key-env", "my_sekret"];
    let mut place = CliHome::new();
    let went = place.run(&words);
    assert_eq!(went.code, Some(1));
    assert!(!went.err.contains("sekret"), "{}", went.err);
    place.set("my_sekret", "x");
    let went = place.run(&words);
    assert_eq!(went.code, Some(0), "{}", went.err);
    assert!(place.text().contains("env_key = \"my_sekret\""));
}

#[test]
fn what_is_there_is_not_replaced() {
    let place = CliHome::with("model = 'mine'\n");
    let went = place.run(&["init", "--model", "llamacpp/any"]);
    assert_eq!(went.code, Some(1));
    assert!(
        went.err.contains("is there already") && went.err.contains("--force"),
        "{}",
        went.err
    );
    assert_eq!(place.text(), "model = 'mine'\n");
    let went = place.run(&["init", "--model", "llamacpp/any", "--force"]);
    assert_eq!(went.code, Some(0), "{}", went.err);
    assert!(place.text().contains("llamacpp/any"));
}

#[test]
fn an_answer_that_cannot_be_leaves_nothing_behind() {
    for (words, line) in [
        (&["--yes"][..], "say --model PROVIDER/MODEL"),
        (&[], "say --model PROVIDER/MODEL"),
        (&["--model", "gpt-5"], "`gpt-5` must be PROVIDER/MODEL"),
        (
            &["--model", "nobody/m"],
            "say where it is with --base-url URL",
        ),
        (
            &["--model", "openai/m", "--key-env", "sk-sekret"],
            "a key itself is not written into the configuration",
        ),
        (
            &["--model", "openai/m", "--key-env", "SEKRETSEKRET2SEKRET"],
            "a key itself is not written into the configuration",
        ),
        (
            &["--model", "openai/m", "--key-env", "/run/key"],
            "name a file with --key-file PATH",
        ),
        (
            &["--model", "\u{1b}[2Jno/m"],
            "the provider `\\u{1b}[2Jno` is none that is known",
        ),
        (
            &["--model", "openai/m", "--key-file", "key"],
            "--key-file must be a path",
        ),
    ] {
        let place = CliHome::new();
        let went = place.run(&[&["init"][..], words].concat());
        assert_eq!(went.code, Some(1), "{words:?}");
        assert!(went.err.contains(line), "{}", went.err);
        assert!(!went.err.to_lowercase().contains("sekret"), "{}", went.err);
        assert_eq!(
            fs::read_dir(place.home.path()).expect("a folder").count(),
            0,
            "{words:?}"
        );
    }
}
