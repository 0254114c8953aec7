//! `raddle login --status`: whether a provider has a key, and where. The key is never shown.

use std::process::ExitCode;

use anyhow::Result;
use raddle_config::{KeySource, SignInKind, Vendors};
use raddle_console::{Printer, sanitize};

use super::LoginTarget;

/// Prints where the key of the provider comes from. The exit status is 1 if there is none.
pub(super) fn print(target: &LoginTarget) -> Result<ExitCode> {
    let provider = &target.provider;
    let name = &provider.name;
    let account = target.vendor_client.account(provider);
    let account = target.runtime.block_on(account)?;
    let missing = |what: String| (format!("not logged in; {what}"), false);
    let (text, is_there) = match (account, &provider.key) {
        (Some(SignInKind::Key), _) => ("logged in with a stored key".to_owned(), true),
        (Some(SignInKind::Tokens), _) => ("logged in through its pages".to_owned(), true),
        (None, KeySource::None) => ("takes no key".to_owned(), true),
        (None, KeySource::Inline(_)) => ("the key is in the configuration".to_owned(), true),
        (None, KeySource::Command(it)) => (format!("`{}` prints the key", it.program), true),
        (None, KeySource::File(path)) if path.exists() => {
            (format!("the key is in {}", path.display()), true)
        }
        (None, KeySource::File(path)) => missing(format!(
            "the key should be in {}, which does not exist",
            path.display()
        )),
        (None, KeySource::Environment { variable, .. }) if is_set(variable) => {
            (format!("the key is in {variable}"), true)
        }
        (None, KeySource::Environment { variable, .. }) => missing(format!(
            "the key should be in {variable}, which is not set here"
        )),
        (None, KeySource::Stored(sign_in)) => match &sign_in.variable {
            Some(variable) if is_set(variable) => (format!("the key is in {variable}"), true),
            Some(variable) => missing(format!(
                "run `raddle login {name}`, or set {variable} where the server is started"
            )),
            None => missing(format!("run `raddle login {name}`")),
        },
    };
    let mut printer = Printer::new();
    printer.line(&sanitize(&format!("{name}: {text}")))?;
    printer.flush()?;
    Ok(match is_there {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Whether an environment variable holds a key.
pub(super) fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|it| !it.trim().is_empty())
}
