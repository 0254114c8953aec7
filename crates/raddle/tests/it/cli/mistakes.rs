//! Mistakes of users: each error gives advice, and the exit status is not 0.

use super::CliHome;

#[test]
fn mistakes_are_reported_with_advice() {
    let home = CliHome::with("model = 'llamacpp/any'\n");
    for (words, code, line) in [
        (&["doctr"][..], 2, "a similar subcommand exists: 'doctor'"),
        (&["config"], 2, "Usage: raddle config <COMMAND>"),
        (&["config", "get"], 2, "<KEY>"),
        (&["config", "set", "model"], 2, "<VALUE>"),
        (&["config", "get", "a..b"], 1, "`a..b`:"),
        (&["config", "set", "", "x"], 1, "the key must not be empty"),
        (
            &["config", "set", "model", "7"],
            1,
            "`model` must be a string",
        ),
        (&["config", "lst"], 2, "a similar subcommand exists: 'list'"),
        (
            &["-c", "model", "config", "list"],
            2,
            "`model` has no `=`; write key=value",
        ),
        (
            &["-c", "=x", "config", "list"],
            2,
            "the key must not be empty",
        ),
        (&["model"], 2, "Usage: raddle model <COMMAND>"),
        (
            &["model", "list", "--offline", "--provider", "openai"],
            2,
            "cannot be used with",
        ),
        (
            &["completions", "tcsh"],
            2,
            "[possible values: bash, elvish, fish, powershell, zsh]",
        ),
        (
            &["init", "--approval", "some"],
            2,
            "[possible values: read, workspace, all]",
        ),
        (
            &["init", "--key-env", "A", "--key-file", "/k"],
            2,
            "cannot be used with",
        ),
        (&["app-server", "--listen", "tcp://x"], 2, "--listen"),
        (
            &["app-server", "--listen", "ws://127.0.0.1:0"],
            1,
            "--ws-auth",
        ),
        (
            &["app-server", "--ws-auth", "capability-token"],
            1,
            "needs --ws-token-file PATH",
        ),
        (&["thread", "show", "0000"], 1, "raddle thread list"),
        (&["thread", "list", "--limit", "0"], 2, "1..=1000"),
        (&["thread", "export"], 2, "<ID>"),
        (&["sandbox"], 2, "COMMAND"),
        (&["judge"], 2, "<LINE>"),
        (
            &["mock", "--listen", "0.0.0.0:0"],
            1,
            "--insecure-any-address",
        ),
        (&["mock", "--script", "/nowhere"], 1, "cannot read /nowhere"),
        (&["daemon", "start", "--timeout", "soon"], 2, "invalid"),
    ] {
        let output = home.run(words);
        assert_eq!(
            (output.code, output.out.as_str()),
            (Some(code), ""),
            "{words:?}: {}",
            output.err
        );
        assert!(output.err.contains(line), "{words:?}: {}", output.err);
    }
}

/// Text of files and users is printed without control characters.
#[test]
fn output_has_no_control_characters() {
    let home = CliHome::with("\"\\u001b[2Jkey\" = 1\n");
    for words in [
        &["config", "list"][..],
        &["config", "get", "'\u{9b}31m"],
        &["mock", "--script", "/nowhere/\u{1b}]0;x\u{7}"],
        &[
            "app-server",
            "--ws-auth",
            "capability-token",
            "--ws-token-file",
            "/\u{1b}[2J",
        ],
    ] {
        let output = home.run(words);
        let text = format!("{}{}", output.out, output.err);
        let moves = |it: char| it.is_control() && !matches!(it, '\n' | '\t');
        assert!(!text.contains(moves), "{words:?}: {text:?}");
        assert!(text.contains("\\u{"), "{words:?}: {text:?}");
    }
}

#[test]
fn a_file_that_is_not_toml_is_named_with_the_line() {
    let home = CliHome::with("model = 'x'\nkey = sekret\n");
    for words in [
        &["config", "list"][..],
        &["config", "set", "model", "y"],
        &["model", "list"],
        &["app-server"],
    ] {
        let output = home.run(words);
        assert_eq!(output.code, Some(1), "{words:?}");
        assert!(
            output
                .err
                .contains("HOME/config.toml is not valid TOML: line 2: "),
            "{words:?}: {}",
            output.err
        );
        assert!(!output.err.contains("sekret"), "{words:?}: {}", output.err);
    }
}
