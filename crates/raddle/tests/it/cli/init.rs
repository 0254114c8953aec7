//! `raddle init`: a first configuration, with and without a terminal.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use super::CliHome;
use crate::support::terminal::TestTerminal;

#[test]
fn options_answer_every_question() {
    let own = ["--base-url", "http://127.0.0.1:8080/v1"];
    for (words, expected, doctor) in [
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
        // A well-known provider at another address keeps its wire format, and gets no key.
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
        let home = CliHome::new();
        let output = home.run(&[&["init"][..], words].concat());
        assert_eq!(
            (output.code, output.out.as_str()),
            (Some(0), ""),
            "{}",
            output.err
        );
        assert!(
            output.err.contains("wrote HOME/config.toml\n"),
            "{}",
            output.err
        );
        assert!(output.err.contains("raddle doctor"), "{}", output.err);
        let text = home.text();
        let settings: String = text
            .lines()
            .filter(|it| !it.is_empty() && !it.starts_with('#'))
            .map(|it| format!("{it}\n"))
            .collect();
        assert_eq!(settings, expected);
        assert!(
            text.starts_with("#:schema ./config.schema.json\n"),
            "{text}"
        );
        assert!(home.home.path().join("config.schema.json").exists());
        let mode = fs::metadata(home.config())
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // The configuration has no warnings.
        assert_eq!(home.run(&["config", "list"]).err, "");
        assert!(home.run(&["doctor"]).out.contains(doctor), "{words:?}");
    }
}

/// The mock model inside the server answers without a key, an address or a started mock.
#[test]
fn the_built_in_mock_answers_after_init() {
    let home = CliHome::new();
    let output = home.run(&["init", "--model", "mock/mock", "--yes"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(!home.text().contains("[model_providers"), "{}", home.text());
    let folder = home.home.path().to_str().expect("a path");
    let output = home.run(&["exec", "--cd", folder, "hello"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(output.out.contains("hello"), "{}", output.out);
    let listed = home.run(&["model", "list"]);
    assert_eq!(listed.out, "mock/mock  (default)\n", "{}", listed.err);
}

/// Each question is repeated until its answer is valid.
#[test]
fn init_asks_its_questions_on_a_terminal() {
    let mut home = CliHome::new();
    home.set("OPENAI_API_KEY", "sekret");
    let mut terminal = TestTerminal::open();
    let mut command = home.command(&["init"]);
    command
        .stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = command.spawn().expect("it runs");
    for (question, answer) in [
        ("PROVIDER/MODEL: ", "gpt"),
        ("`gpt` must be PROVIDER/MODEL", "anthropic/claude"),
        ("variable or path [ANTHROPIC_API_KEY]: ", "sk-sekret-1"),
        ("is not written into the configuration", "~/keys/claude"),
        ("read, workspace or all [workspace]: ", "none"),
        ("`none` is none of read, workspace and all", ""),
        ("one word now? yes or no [yes]: ", "no"),
    ] {
        answer_question(&mut terminal, question, answer);
    }
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{}", terminal.shown());
    terminal.wait_for("1. openai, with the key in OPENAI_API_KEY");
    terminal.wait_for("wrote ");
    let text = home.text();
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

/// The last entry of the menu is the mock, which then answers the check.
#[test]
fn the_mock_is_chosen_by_its_number_and_answers_the_check() {
    let home = CliHome::new();
    let mut terminal = TestTerminal::open();
    let mut command = home.command(&["init"]);
    command
        .current_dir(home.home.path())
        .stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = command.spawn().expect("it runs");
    terminal.wait_for("number or PROVIDER/MODEL: ");
    // Servers that run on this machine come first.
    let shown = terminal.shown();
    let entry = shown.lines().find(|it| it.contains(". mock/mock, "));
    let number = entry
        .and_then(|it| it.trim().split_once('.'))
        .expect("an entry")
        .0;
    for (question, answer) in [
        ("PROVIDER/MODEL: ", number),
        ("read, workspace or all [workspace]: ", "read"),
        ("one word now? yes or no [yes]: ", ""),
    ] {
        answer_question(&mut terminal, question, answer);
    }
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{}", terminal.shown());
    terminal.wait_for("You said: Reply with the word hello.");
    terminal.wait_for("the model answers");
    assert!(home.text().contains("model = \"mock/mock\"\n"));
    assert!(home.text().contains("sandbox_mode = \"read-only\"\n"));
}

/// An aborted `init` writes nothing.
#[test]
fn end_of_input_aborts_init() {
    let home = CliHome::new();
    let mut terminal = TestTerminal::open();
    let mut command = home.command(&["init"]);
    command
        .stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = command.spawn().expect("it runs");
    terminal.wait_for("PROVIDER/MODEL: ");
    terminal.user_side.write_all(b"\x04").expect("typed");
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(1), "{}", terminal.shown());
    terminal.wait_for("no answer came; nothing was written");
    assert!(!home.config().exists());
}

/// A name that looks like a key is rejected unless a variable of that name is set.
#[test]
fn a_variable_with_small_letters_must_be_set() {
    let words = ["init", "--model", "openai/m", "--key-env", "my_sekret"];
    let mut home = CliHome::new();
    let output = home.run(&words);
    assert_eq!(output.code, Some(1));
    assert!(!output.err.contains("sekret"), "{}", output.err);
    home.set("my_sekret", "x");
    let output = home.run(&words);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(home.text().contains("env_key = \"my_sekret\""));
}

#[test]
fn an_existing_configuration_is_not_replaced() {
    let home = CliHome::with("model = 'mine'\n");
    let output = home.run(&["init", "--model", "llamacpp/any"]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.err.contains("is there already") && output.err.contains("--force"),
        "{}",
        output.err
    );
    assert_eq!(home.text(), "model = 'mine'\n");
    let output = home.run(&["init", "--model", "llamacpp/any", "--force"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(home.text().contains("llamacpp/any"));
}

#[test]
fn an_invalid_answer_leaves_no_files() {
    for (words, line) in [
        (&["--yes"][..], "give --model PROVIDER/MODEL"),
        (&[], "give --model PROVIDER/MODEL"),
        (&["--model", "gpt-5"], "`gpt-5` must be PROVIDER/MODEL"),
        (
            &["--model", "nobody/m"],
            "give its address with --base-url URL",
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
            "the provider `\\u{1b}[2Jno` is unknown",
        ),
        (
            &["--model", "openai/m", "--key-file", "key"],
            "--key-file must be a path",
        ),
    ] {
        let home = CliHome::new();
        let output = home.run(&[&["init"][..], words].concat());
        assert_eq!(output.code, Some(1), "{words:?}");
        assert!(output.err.contains(line), "{}", output.err);
        assert!(
            !output.err.to_lowercase().contains("sekret"),
            "{}",
            output.err
        );
        assert_eq!(
            fs::read_dir(home.home.path()).expect("a folder").count(),
            0,
            "{words:?}"
        );
    }
}

/// Types an answer once the question is shown.
fn answer_question(terminal: &mut TestTerminal, question: &str, answer: &str) {
    terminal.wait_for(question);
    let line = format!("{answer}\n");
    let typed = terminal.user_side.write_all(line.as_bytes());
    typed.expect("typed");
}
