//! Variables of commands: their names, and where they are set.

use std::collections::BTreeMap;

use raddle_core::Settings;
use raddle_core::policy::command_variables::{VariableError, check, of_command};
use serde_json::json;

/// The commands for which a variable is set.
#[derive(Debug, PartialEq)]
enum Commands {
    All,
    Sandboxed,
    Rejected(VariableError),
}

use Commands::{All, Rejected, Sandboxed};

fn commands_with(name: &str, value: &str) -> Commands {
    let settings = Settings {
        variables: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..Settings::default()
    };
    let (inside, outside) = (of_command(&settings, true), of_command(&settings, false));
    match check(&settings.variables) {
        Err((faulty, error)) => {
            assert_eq!(faulty, name);
            assert!(inside.is_empty() && outside.is_empty(), "{name}={value}");
            Rejected(error)
        }
        Ok(()) => {
            assert_eq!(inside, settings.variables);
            match outside.is_empty() {
                true => Sandboxed,
                false => All,
            }
        }
    }
}

#[test]
fn a_variable_is_set_by_its_name_and_value() {
    let (long, longest) = ("a".repeat(257), "a".repeat(4097));
    let (long, longest) = (long.as_str(), longest.as_str());
    for (name, value, expected) in [
        ("HAPI_SESSION_ID", "3f0c-12", All),
        ("CLIENT_THREAD_ID", "t:1", All),
        ("AI_AGENT", "editor_1.2", All),
        // These could be an option, a path or several words to an approved line.
        ("AI_AGENT", "-x", Sandboxed),
        ("AI_AGENT", "./x", Sandboxed),
        ("AI_AGENT", "a b", Sandboxed),
        ("AI_AGENT", "$(x)", Sandboxed),
        ("AI_AGENT", "", Sandboxed),
        ("AI_AGENT", long, Sandboxed),
        ("ai_agent", "a", Sandboxed),
        ("AWS_ACCESS_KEY_ID", "a", Sandboxed),
        ("CC", "/tmp/x", Sandboxed),
        ("CI", "1", Sandboxed),
        ("TZ", "UTC", Sandboxed),
        ("PATH", "/x", Rejected(VariableError::Reserved)),
        ("HOME", "/x", Rejected(VariableError::Reserved)),
        ("TMPDIR", "/x", Rejected(VariableError::Reserved)),
        ("LD_PRELOAD", "/x.so", Rejected(VariableError::Reserved)),
        ("BASH_ENV", "/x", Rejected(VariableError::Reserved)),
        ("ENV", "/x", Rejected(VariableError::Reserved)),
        ("GIT_SSH_COMMAND", "x", Rejected(VariableError::Reserved)),
        ("GIT_CONFIG_COUNT", "0", Rejected(VariableError::Reserved)),
        ("GIT_SESSION_ID", "a", Rejected(VariableError::Reserved)),
        ("PYTHONSTARTUP", "/x", Rejected(VariableError::Reserved)),
        ("NODE_OPTIONS", "-r x", Rejected(VariableError::Reserved)),
        ("npm_config_x", "x", Rejected(VariableError::Reserved)),
        ("RUSTC_WRAPPER", "x", Rejected(VariableError::Reserved)),
        ("EDITOR", "x", Rejected(VariableError::Reserved)),
        ("HTTPS_PROXY", "x", Rejected(VariableError::Reserved)),
        ("no_proxy", "*", Rejected(VariableError::Reserved)),
        ("RADDLE_HOME", "/x", Rejected(VariableError::Reserved)),
        ("", "a", Rejected(VariableError::BadName)),
        ("1A", "a", Rejected(VariableError::BadName)),
        ("A=B", "a", Rejected(VariableError::BadName)),
        ("A B", "a", Rejected(VariableError::BadName)),
        (
            "BASH_FUNC_ls%%",
            "() { x; }",
            Rejected(VariableError::BadName),
        ),
        ("É", "a", Rejected(VariableError::BadName)),
        (long, "a", Rejected(VariableError::BadName)),
        ("A", "a\nb", Rejected(VariableError::BadValue)),
        ("A", "a\0b", Rejected(VariableError::BadValue)),
        ("A", longest, Rejected(VariableError::BadValue)),
    ] {
        assert_eq!(commands_with(name, value), expected, "{name}={value}");
    }
}

#[test]
fn the_number_of_variables_is_limited() {
    let variables = |count: usize| -> BTreeMap<String, String> {
        let pair = |at: usize| (format!("A{at:03}"), "b".to_owned());
        (0..count).map(pair).collect()
    };
    assert_eq!(check(&variables(64)), Ok(()));
    assert_eq!(check(&variables(65)), Err(("A064", VariableError::TooMany)));
}

/// Journals of earlier versions have no variables, and settings without variables are stored as
/// they were then.
#[test]
fn variables_are_an_optional_member_of_stored_settings() {
    let variables = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
    for (variables, expected) in [
        (BTreeMap::new(), None),
        (variables, Some(json!({"A": "b"}))),
    ] {
        let settings = Settings {
            variables,
            ..Settings::default()
        };
        let stored = serde_json::to_value(&settings).expect("JSON");
        assert_eq!(stored.get("variables"), expected.as_ref());
        let read: Settings = serde_json::from_value(stored).expect("settings");
        assert_eq!(read, settings);
    }
}
