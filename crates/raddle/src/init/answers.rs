//! The three questions of `raddle init`, answered by options or on the terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use raddle_config::{Preset, presets};
use raddle_console::sanitize;

use crate::cli::{Init, InitApproval};

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
    Variable(String),
    File(String),
}

impl InitAnswers {
    pub(super) fn get(args: &Init) -> Result<Self> {
        let asks = !args.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
        let (provider, model) = match &args.model {
            Some(model) => split(model)?,
            None if asks => ask_model()?,
            None => bail!(
                "no model is given, and there is no terminal to ask on; give --model PROVIDER/MODEL. Known providers: {}",
                names()
            ),
        };
        let preset = presets().iter().find(|it| it.name == provider);
        let base_url = match (&args.base_url, preset) {
            (Some(url), _) => Some(url.clone()),
            (None, Some(_)) => None,
            (None, None) if asks => Some(ask(&format!("Where is {provider}? Its base_url"), None)?),
            (None, None) => bail!(
                "the provider `{provider}` is unknown; give its address with --base-url URL, or use one of {}",
                names()
            ),
        };
        let preset = preset.filter(|_| base_url.is_none());
        let usual = usual_key(preset);
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
            // A provider on this machine takes none.
            (None, None) if asks && usual != Some(KeyLocation::None) => ask_key(preset)?,
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

fn names() -> String {
    let names: Vec<&str> = presets().iter().map(|it| it.name).collect();
    names.join(", ")
}

/// Splits `PROVIDER/MODEL`.
fn split(text: &str) -> Result<(String, String)> {
    match text.trim().split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
            Ok((provider.to_owned(), model.to_owned()))
        }
        _ => bail!(
            "`{text}` must be PROVIDER/MODEL, like llamacpp/any; `raddle model list --provider NAME` lists what one has"
        ),
    }
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

fn ask_model() -> Result<(String, String)> {
    print(&format!(
        "1. Which model, as PROVIDER/MODEL? Known providers: {}.",
        names()
    ))?;
    let is_set = |it: &&Preset| it.env_key.is_some_and(|it| std::env::var_os(it).is_some());
    let set: Vec<&str> = presets().iter().filter(is_set).map(|it| it.name).collect();
    if !set.is_empty() {
        print(&format!("   There are keys here for: {}.", set.join(", ")))?;
    }
    ask_until_valid(|| split(&ask("   PROVIDER/MODEL", None)?))
}

fn ask_key(preset: Option<&Preset>) -> Result<KeyLocation> {
    let usual = preset.and_then(|it| it.env_key);
    print(
        "2. Where is its key? The name of an environment variable, or the path of a file that holds only the key.",
    )?;
    let question = match usual {
        Some(_) => "   variable or path",
        None => "   variable or path, or nothing if it takes none",
    };
    ask_until_valid(|| key_location(&ask(question, usual)?))
}

fn ask_approval() -> Result<InitApproval> {
    print("3. What may the agent do without asking?")?;
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

/// Repeats a question until the answer is valid. The end of input is an error.
fn ask_until_valid<T>(mut question: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match question() {
            Err(error) if error.is::<io::Error>() => return Err(error),
            Err(error) => print(&format!("   {error:#}"))?,
            answer => return answer,
        }
    }
}

fn ask(question: &str, usual: Option<&str>) -> Result<String> {
    let mut terminal = io::stderr();
    let question = sanitize(question);
    match usual {
        Some(usual) => write!(terminal, "{question} [{usual}]: ")?,
        None => write!(terminal, "{question}: ")?,
    }
    terminal.flush()?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        let ended = io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "no answer came; nothing was written",
        );
        return Err(ended.into());
    }
    let answer = line.trim();
    Ok(match answer.is_empty() {
        true => usual.unwrap_or_default().to_owned(),
        false => answer.to_owned(),
    })
}

fn print(line: &str) -> Result<()> {
    writeln!(io::stderr(), "{}", sanitize(line)).context("cannot write to the terminal")
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
