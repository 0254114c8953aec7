//! `raddle login` and `raddle logout`.

use std::io::Write;
use std::process::{Output, Stdio};

use super::CliHome;
use crate::support::terminal::TestTerminal;

impl CliHome {
    /// Runs a command with this stdin. Returns the exit status and stderr.
    fn feed(&self, words: &[&str], input: &str) -> (Option<i32>, String) {
        let mut command = self.command(words);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it runs");
        let mut stdin = child.stdin.take().expect("stdin");
        // A command that fails first does not read it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let Output { status, stderr, .. } = child.wait_with_output().expect("an end");
        let err = String::from_utf8(stderr).expect("text");
        (status.code(), err)
    }

    /// Runs `login --status`. Returns the exit status and stdout.
    fn status(&self) -> (Option<i32>, String) {
        let output = self.run(&["login", "--status"]);
        (output.code, output.out)
    }
}

#[test]
fn a_key_from_stdin_is_stored_shown_as_present_and_deleted() {
    let mut home = CliHome::with("model = 'anthropic/claude'\n");
    let (code, out) = home.status();
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("run `raddle login anthropic`"), "{out}");

    let (code, err) = home.feed(&["login"], "sk-sekret\n");
    assert_eq!(code, Some(0), "{err}");
    assert!(!err.contains("sekret"), "{err}");
    let stored = home.home.path().join("credentials.json");
    let stored = std::fs::read_to_string(stored).expect("credentials");
    assert!(stored.contains("sk-sekret"), "{stored}");
    let expected = "anthropic: logged in with a stored key\n".to_owned();
    assert_eq!(home.status(), (Some(0), expected.clone()));
    // As Codex spells it.
    assert_eq!(home.run(&["login", "status"]).out, expected);

    home.set("ANTHROPIC_API_KEY", "sk-other");
    let output = home.run(&["logout"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(
        output.err.contains("ANTHROPIC_API_KEY is set"),
        "{}",
        output.err
    );
    let expected = "anthropic: the key is in ANTHROPIC_API_KEY\n".to_owned();
    assert_eq!(home.status(), (Some(0), expected));
    let output = home.run(&["logout"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(
        output.err.contains("no credentials of `anthropic`"),
        "{}",
        output.err
    );
}

/// The credentials are those of the name, however the provider is configured by now.
#[test]
fn a_key_is_deleted_after_the_provider_changed() {
    let section = "[model_providers.own]\nbase_url = 'http://127.0.0.1:9/v1'\n";
    let sign_in = format!("{section}requires_openai_auth = true\n");
    for changed in [
        format!("{section}env_key = 'OWN_KEY'\n"),
        sign_in.replace("/v1", "/v2"),
        String::new(),
    ] {
        let home = CliHome::with(&sign_in);
        let (code, err) = home.feed(&["login", "own"], "sk-sekret\n");
        assert_eq!(code, Some(0), "{err}");
        std::fs::write(home.config(), &changed).expect("written");
        let output = home.run(&["logout", "own"]);
        assert_eq!(output.code, Some(0), "{changed} {}", output.err);
        assert!(
            output.err.contains("removed the credentials of `own`"),
            "{changed} {}",
            output.err
        );
        let stored = home.home.path().join("credentials.json");
        let stored = std::fs::read_to_string(stored).expect("credentials");
        assert!(!stored.contains("sekret"), "{changed} {stored}");
    }
}

#[test]
fn init_knows_a_stored_key() {
    let home = CliHome::new();
    let (code, err) = home.feed(&["login", "anthropic"], "sk-sekret\n");
    assert_eq!(code, Some(0), "{err}");
    let output = home.run(&["init", "--model", "anthropic/claude", "--yes"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(!output.err.contains("ANTHROPIC_API_KEY"), "{}", output.err);
    let text = home.text();
    assert!(text.contains("stored by `raddle login`"), "{text}");
    assert!(!text.contains("env_key"), "{text}");
}

#[test]
fn a_key_is_not_echoed_on_the_terminal() {
    for (typed, code, shown) in [
        ("sk-sekret\n", 0, "logged in to `openai`"),
        ("sk-sekret\u{3}", 1, "interrupted; nothing was stored"),
    ] {
        let home = CliHome::new();
        let mut terminal = TestTerminal::open();
        let mut command = home.command(&["login", "openai"]);
        command
            .stdin(terminal.program_side())
            .stderr(terminal.program_side());
        let child = command.spawn().expect("it runs");
        terminal.wait_for("key of openai: ");
        terminal
            .user_side
            .write_all(typed.as_bytes())
            .expect("typed");
        let ended = child.wait_with_output().expect("an end");
        terminal.wait_for(shown);
        let text = terminal.shown();
        assert_eq!(ended.status.code(), Some(code), "{text}");
        assert!(!text.contains("sekret"), "{text}");
        let stored = home.home.path().join("credentials.json");
        assert_eq!(stored.exists(), code == 0, "{text}");
    }
}

#[test]
fn a_login_that_is_not_possible_says_why() {
    let own = "[model_providers.own]\nbase_url = 'http://127.0.0.1:9/v1'\nenv_key = 'MINE'\n";
    let home = CliHome::with(own);
    for (words, input, expected) in [
        (&["login"][..], "k", "no model provider is configured"),
        (&["login", "llamacpp"], "k", "takes no key"),
        (
            &["login", "own"],
            "k",
            "remove that under [model_providers.own]",
        ),
        (&["login", "anthopic"], "k", "did you mean `anthropic`?"),
        (&["login", "openai"], " \n", "the key is empty"),
        (&["login", "openai"], "a b", "the key has spaces"),
        (&["login", "openai", "--device"], "k", "no pages to sign in"),
        (
            &["login", "status", "--device"],
            "",
            "takes neither --device",
        ),
        (&["logout", "nobody"], "", "the model provider `nobody`"),
    ] {
        let (code, err) = home.feed(words, input);
        assert_eq!(code, Some(1), "{words:?}: {err}");
        assert!(err.contains(expected), "{words:?}: {err}");
        assert!(!err.contains("account/"), "{words:?}: {err}");
    }
}
