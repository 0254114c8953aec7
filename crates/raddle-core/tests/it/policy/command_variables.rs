//! Variables of commands: their names, and where they are set.

use std::collections::BTreeMap;

use raddle_core::Settings;
use raddle_core::policy::command_variables::{VariableError, check, of_command};

/// Where a variable is set.
#[derive(Debug, PartialEq)]
enum Place {
    Everywhere,
    InSandboxes,
    Nowhere(VariableError),
}

use Place::{Everywhere, InSandboxes, Nowhere};

fn place(name: &str, value: &str) -> Place {
    let settings = Settings {
        variables: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..Settings::default()
    };
    let (inside, outside) = (of_command(&settings, true), of_command(&settings, false));
    match check(&settings.variables) {
        Err((faulty, error)) => {
            assert_eq!(faulty, name);
            assert!(inside.is_empty() && outside.is_empty(), "{name}={value}");
            Nowhere(error)
        }
        Ok(()) => {
            assert_eq!(inside, settings.variables);
            match outside.is_empty() {
                true => InSandboxes,
                false => Everywhere,
            }
        }
    }
}

#[test]
fn a_variable_is_set_by_its_name_and_value() {
    let (long, longest) = ("a".repeat(257), "a".repeat(4097));
    let (long, longest) = (long.as_str(), longest.as_str());
    for (name, value, expected) in [
        ("HAPI_SESSION_ID", "3f0c-12", Everywhere),
        ("CLIENT_THREAD_ID", "t:1", Everywhere),
        ("AI_AGENT", "editor_1.2", Everywhere),
        // These could be an option, a path or several words to an approved line.
        ("AI_AGENT", "-x", InSandboxes),
        ("AI_AGENT", "./x", InSandboxes),
        ("AI_AGENT", "a b", InSandboxes),
        ("AI_AGENT", "$(x)", InSandboxes),
        ("AI_AGENT", "", InSandboxes),
        ("AI_AGENT", long, InSandboxes),
        ("ai_agent", "a", InSandboxes),
        ("AWS_ACCESS_KEY_ID", "a", InSandboxes),
        ("CC", "/tmp/x", InSandboxes),
        ("CI", "1", InSandboxes),
        ("TZ", "UTC", InSandboxes),
        ("PATH", "/x", Nowhere(VariableError::Reserved)),
        ("HOME", "/x", Nowhere(VariableError::Reserved)),
        ("TMPDIR", "/x", Nowhere(VariableError::Reserved)),
        ("LD_PRELOAD", "/x.so", Nowhere(VariableError::Reserved)),
        ("BASH_ENV", "/x", Nowhere(VariableError::Reserved)),
        ("ENV", "/x", Nowhere(VariableError::Reserved)),
        ("GIT_SSH_COMMAND", "x", Nowhere(VariableError::Reserved)),
        ("GIT_CONFIG_COUNT", "0", Nowhere(VariableError::Reserved)),
        ("GIT_SESSION_ID", "a", Nowhere(VariableError::Reserved)),
        ("PYTHONSTARTUP", "/x", Nowhere(VariableError::Reserved)),
        ("NODE_OPTIONS", "-r x", Nowhere(VariableError::Reserved)),
        ("npm_config_x", "x", Nowhere(VariableError::Reserved)),
        ("RUSTC_WRAPPER", "x", Nowhere(VariableError::Reserved)),
        ("EDITOR", "x", Nowhere(VariableError::Reserved)),
        ("HTTPS_PROXY", "x", Nowhere(VariableError::Reserved)),
        ("no_proxy", "*", Nowhere(VariableError::Reserved)),
        ("RADDLE_HOME", "/x", Nowhere(VariableError::Reserved)),
        ("", "a", Nowhere(VariableError::BadName)),
        ("1A", "a", Nowhere(VariableError::BadName)),
        ("A=B", "a", Nowhere(VariableError::BadName)),
        ("A B", "a", Nowhere(VariableError::BadName)),
        (
            "BASH_FUNC_ls%%",
            "() { x; }",
            Nowhere(VariableError::BadName),
        ),
        ("É", "a", Nowhere(VariableError::BadName)),
        (long, "a", Nowhere(VariableError::BadName)),
        ("A", "a\nb", Nowhere(VariableError::BadValue)),
        ("A", "a\0b", Nowhere(VariableError::BadValue)),
        ("A", longest, Nowhere(VariableError::BadValue)),
    ] {
        assert_eq!(place(name, value), expected, "{name}={value}");
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

/// Journals of earlier versions have no variables, and those without variables stay as they are.
#[test]
fn settings_without_variables_are_stored_as_before() {
    let stored = serde_json::to_value(Settings::default()).expect("JSON");
    assert_eq!(stored.get("variables"), None);
    let read: Settings = serde_json::from_value(stored).expect("settings");
    assert_eq!(read, Settings::default());
}
