//! The questions of `raddle init`, answered by options or on the terminal.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result, bail};
use raddle_config::{Preset, presets};
use raddle_model::Endpoint;

use super::detection;
use super::menu::{self, ModelSelection};
use super::prompt::{ask, ask_until_valid, print};
use crate::cli::{Init, InitApproval};
use crate::home::Home;

/// The minimum length of a text that is taken for a key by its form.
const KEY_LETTERS_MIN: usize = 16;

#[derive(Debug)]
pub(super) struct InitAnswers {
    pub(super) provider: String,
    pub(super) model: String,
    /// The address of the provider, if it is not a well-known one.
    pub(super) base_url: Option<String>,
    pub(super) key: KeyLocation,
    pub(super) approval: InitApproval,
}

/// The location of the key. The key itself is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyLocation {
    None,
    /// Stored by `raddle login`.
    Stored,
    Variable(String),
    File(String),
}

impl InitAnswers {
    pub(super) fn get(args: &Init, home: &Home) -> Result<Self> {
        let asks = !args.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
        let selection = match &args.model {
            Some(model) => {
                let (provider, model) = menu::split(model)?;
                ModelSelection {
                    provider,
                    model,
                    has_key: false,
                }
            }
            None if asks => menu::choose(home, args.base_url.as_deref())?,
            None => bail!(
                "no model is given, and there is no terminal to ask on; give --model PROVIDER/MODEL. Known providers: {}",
                names()
            ),
        };
        let ModelSelection {
            provider,
            model,
            has_key,
        } = selection;
        let preset = presets().iter().find(|it| it.name == provider);
        let base_url = match (&args.base_url, preset) {
            (Some(url), _) => Some(base_url(url).context("--base-url cannot be used")?),
            (None, Some(_)) => None,
            (None, None) if asks => {
                let question = format!("Where is {provider}? Its base_url");
                Some(ask_until_valid(|| base_url(&ask(&question, None)?))?)
            }
            (None, None) => bail!(
                "the provider `{provider}` is unknown; give its address with --base-url URL, or use one of {}",
                names()
            ),
        };
        let preset = preset.filter(|_| base_url.is_none());
        // The key that is known is for the usual address.
        let has_key = has_key && preset.is_some();
        let is_logged_in = match preset {
            Some(preset) => detection::is_logged_in(home, preset)?,
            None => false,
        };
        let usual = match is_logged_in {
            true => Some(KeyLocation::Stored),
            false => usual_key(preset),
        };
        let needs_key = !matches!(usual, Some(KeyLocation::None | KeyLocation::Stored));
        let key = match (&args.key_env, &args.key_file) {
            (Some(name), _) => match key_location(name)? {
                KeyLocation::File(_) => bail!(
                    "--key-env must be the name of a variable; name a file with --key-file PATH"
                ),
                location => location,
            },
            (None, Some(path)) => match key_location(path) {
                Ok(file @ KeyLocation::File(_)) => file,
                _ => bail!("--key-file must be a path that begins with / or ~/"),
            },
            // A provider on this machine takes none, and that of a logged in user is stored.
            (None, None) if asks && !has_key && needs_key => ask_key(preset)?,
            (None, None) => usual.unwrap_or(KeyLocation::None),
        };
        let approval = match args.approval {
            Some(approval) => approval,
            None if asks => ask_approval()?,
            None => InitApproval::Workspace,
        };
        Ok(Self {
            provider,
            model,
            base_url,
            key,
            approval,
        })
    }
}

/// The default location of the key of a well-known provider; `None` for other providers.
fn usual_key(preset: Option<&Preset>) -> Option<KeyLocation> {
    let preset = preset?;
    let variable = preset
        .env_key
        .map(|it| KeyLocation::Variable(it.to_owned()));
    Some(variable.unwrap_or(KeyLocation::None))
}

/// Parses the address of a provider, as the client of models does.
fn base_url(text: &str) -> Result<String> {
    let text = text.trim();
    text.parse::<Endpoint>()?;
    Ok(text.to_owned())
}

fn names() -> String {
    let names: Vec<&str> = presets().iter().map(|it| it.name).collect();
    names.join(", ")
}

/// Parses the location of a key: the name of a variable, or a path.
fn key_location(text: &str) -> Result<KeyLocation> {
    let text = text.trim();
    match text {
        "" => Ok(KeyLocation::None),
        path if is_path(path) => Ok(KeyLocation::File(path.to_owned())),
        name if is_name(name) => Ok(KeyLocation::Variable(name.to_owned())),
        // The text may be a key, so it is not echoed.
        _ => bail!(
            "that is neither the name of an environment variable nor a path from / or ~/ on; a key itself is not written into the configuration. A name that looks like a key must be that of a variable that is set"
        ),
    }
}

/// Keys may start with a slash too. They are long, have no other slash or dot, and no such file
/// exists.
fn is_path(text: &str) -> bool {
    let is_path = |rest: &str| {
        rest.contains(['/', '.']) || rest.len() < KEY_LETTERS_MIN || Path::new(text).exists()
    };
    text.starts_with("~/") || text.strip_prefix('/').is_some_and(is_path)
}

/// Keys are often letters and digits too. So a name must be set if it is not all capitals, or if it
/// is long, has digits and no underscore.
fn is_name(text: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if !text.chars().all(is_plain) || text.starts_with(|it: char| it.is_ascii_digit()) {
        return false;
    }
    let is_loud = !text.contains(|it: char| it.is_ascii_lowercase());
    let is_keylike = text.len() >= KEY_LETTERS_MIN
        && text.contains(|it: char| it.is_ascii_digit())
        && !text.contains('_');
    is_loud && !is_keylike || std::env::var_os(text).is_some()
}

fn ask_key(preset: Option<&Preset>) -> Result<KeyLocation> {
    let usual = preset.and_then(|it| it.env_key);
    print(
        "Where is its key? The name of an environment variable, or the path of a file that holds only the key.",
    )?;
    let question = match usual {
        Some(_) => "   variable or path",
        None => "   variable or path, or nothing if it takes none",
    };
    ask_until_valid(|| key_location(&ask(question, usual)?))
}

fn ask_approval() -> Result<InitApproval> {
    print("What may the agent do without asking?")?;
    print(
        "   read: read files. workspace: also change the folder it works in, and run commands inside the sandbox.",
    )?;
    print("   all: anything, without a sandbox; for machines made for it.")?;
    ask_until_valid(
        || match ask("   read, workspace or all", Some("workspace"))?.as_str() {
            "read" => Ok(InitApproval::Read),
            "workspace" => Ok(InitApproval::Workspace),
            "all" => Ok(InitApproval::All),
            other => bail!("`{other}` is none of read, workspace and all"),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_locations_are_parsed() {
        for (text, expected) in [
            ("", KeyLocation::None),
            ("MY_KEY2", KeyLocation::Variable("MY_KEY2".to_owned())),
            ("_K", KeyLocation::Variable("_K".to_owned())),
            ("~/k", KeyLocation::File("~/k".to_owned())),
            ("/run/k", KeyLocation::File("/run/k".to_owned())),
            ("/key", KeyLocation::File("/key".to_owned())),
            (
                "~/my-vendors-key.txt",
                KeyLocation::File("~/my-vendors-key.txt".to_owned()),
            ),
            (
                "MYVENDORSLONGKEYNAME",
                KeyLocation::Variable("MYVENDORSLONGKEYNAME".to_owned()),
            ),
            (
                "MY_VENDORS_LONG_KEY_2",
                KeyLocation::Variable("MY_VENDORS_LONG_KEY_2".to_owned()),
            ),
        ] {
            assert_eq!(key_location(text).expect(text), expected);
        }
        for key in [
            "sk-ant-sekret",
            "a b",
            "2KEY",
            "./k",
            "a8Fk29dKq0ZmXy71LwPbTr5UvNc3EhGs",
            "A8Fk29dKq0ZmXy71LwPbTr5UvNc3EhGs",
            "AKIAIOSFODNN7EXAMPLE",
            "/A8Fk29dKq0ZmXy71LwPbTr5UvNc3EhGs=",
            "my_key",
        ] {
            let error = key_location(key).expect_err(key).to_string();
            assert!(!error.contains(key), "{error}");
        }
    }
}
