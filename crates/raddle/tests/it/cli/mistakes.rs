//! Mistakes: each says what to do, and ends in a status that is not 0.

use super::CliHome;

#[test]
fn what_was_typed_wrongly_is_said() {
    let place = CliHome::with("model = 'llamacpp/any'\n");
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
        let went = place.run(words);
        assert_eq!(
            (went.code, went.out.as_str()),
            (Some(code), ""),
            "{words:?}: {}",
            went.err
        );
        assert!(went.err.contains(line), "{words:?}: {}", went.err);
    }
}

/// What files and people say goes to the terminal without what would move it.
#[test]
fn nothing_moves_the_terminal() {
    let place = CliHome::with("\"\\u001b[2Jkey\" = 1\n");
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
        let went = place.run(words);
        let said = format!("{}{}", went.out, went.err);
        let moves = |it: char| it.is_control() && !matches!(it, '\n' | '\t');
        assert!(!said.contains(moves), "{words:?}: {said:?}");
        assert!(said.contains("\\u{"), "{words:?}: {said:?}");
    }
}

#[test]
fn a_file_that_is_not_toml_is_named_with_the_line() {
    let place = CliHome::with("model = 'x'\nkey = sekret\n");
    for words in [
        &["config", "list"][..],
        &["config", "set", "model", "y"],
        &["model", "list"],
        &["app-server"],
    ] {
        let went = place.run(words);
        assert_eq!(went.code, Some(1), "{words:?}");
        assert!(
            went.err
                .contains("HOME/config.toml is not valid TOML: line 2: "),
            "{words:?}: {}",
            went.err
        );
        assert!(!went.err.contains("sekret"), "{words:?}: {}", went.err);
    }
}
