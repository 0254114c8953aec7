//! The three questions, answered by options or on the terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use raddle_server::{Preset, presets};

use crate::cli::{Init, InitApproval};
use crate::print::sanitize;

/// The shortest text that is taken for a key by its looks.
const KEY_LETTERS_MIN: usize = 16;

/// What was chosen.
#[derive(Debug)]
pub(super) struct InitAnswers {
    pub(super) provider: String,
    pub(super) model: String,
    /// Where the provider is, if it is not a well-known one.
    pub(super) base_url: Option<String>,
    pub(super) key: KeyLocation,
    pub(super) approval: InitApproval,
}

/// Where the key is. It is never written down.
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
                "nobody can be asked which model; say --model PROVIDER/MODEL. Known providers: {}",
                names()
            ),
        };
        let preset = presets().iter().find(|it| it.name == provider);
        let base_url = match (&args.base_url, preset) {
            (Some(url), _) => Some(url.clone()),
            (None, Some(_)) => None,
            (None, None) if asks => Some(ask(&format!("Where is {provider}? Its base_url"), None)?),
            (None, None) => bail!(
                "the provider `{provider}` is none that is known; say where it is with --base-url URL, or use one of {}",
                names()
            ),
        };
        let preset = preset.filter(|_| base_url.is_none());
        let usual = usual_key(preset);
        let key = match (&args.key_env, &args.key_file) {
            (Some(name), _) => match place(name)? {
                KeyLocation::File(_) => bail!(
                    "--key-env must be the name of a variable; name a file with --key-file PATH"
                ),
                place => place,
            },
            (None, Some(path)) => match place(path) {
                Ok(file @ KeyLocation::File(_)) => file,
                _ => bail!("--key-file must be a path that begins with / or ~/"),
            },
            // One on this machine takes none.
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

/// Where the key of a well-known provider is; nothing of one that is not known.
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

/// The provider and the model of `PROVIDER/MODEL`.
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

/// A place of a key: the name of a variable, or a path.
fn place(text: &str) -> Result<KeyLocation> {
    let text = text.trim();
    match text {
        "" => Ok(KeyLocation::None),
        path if is_path(path) => Ok(KeyLocation::File(path.to_owned())),
        name if is_name(name) => Ok(KeyLocation::Variable(name.to_owned())),
        // It may be a key, which is not shown again.
        _ => bail!(
            "that is neither the name of an environment variable nor a path from / or ~/ on; a key itself is not written into the configuration. A name that looks like a key must be that of a variable that is set"
        ),
    }
}

/// Keys may begin with a slash too. They are long, in one piece, and no file.
fn is_path(text: &str) -> bool {
    let is_path = |rest: &str| {
        rest.contains(['/', '.']) || rest.len() < KEY_LETTERS_MIN || Path::new(text).exists()
    };
    text.starts_with("~/") || text.strip_prefix('/').is_some_and(is_path)
}

/// Keys are often letters and digits too. So a name that is not all capitals, or is long, has digits and is in one
/// piece, must be one that is set.
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
    tell(&format!(
        "1. Which model, as PROVIDER/MODEL? Known providers: {}.",
        names()
    ))?;
    let is_set = |it: &&Preset| it.env_key.is_some_and(|it| std::env::var_os(it).is_some());
    let set: Vec<&str> = presets().iter().filter(is_set).map(|it| it.name).collect();
    if !set.is_empty() {
        tell(&format!("   There are keys here for: {}.", set.join(", ")))?;
    }
    again(|| split(&ask("   PROVIDER/MODEL", None)?))
}

fn ask_key(preset: Option<&Preset>) -> Result<KeyLocation> {
    let usual = preset.and_then(|it| it.env_key);
    tell(
        "2. Where is its key? The name of an environment variable, or the path of a file that holds only the key.",
    )?;
    let question = match usual {
        Some(_) => "   variable or path",
        None => "   variable or path, or nothing if it takes none",
    };
    again(|| place(&ask(question, usual)?))
}

fn ask_approval() -> Result<InitApproval> {
    tell("3. What may the agent do without asking?")?;
    tell(
        "   read: read files. workspace: also change the folder it works in, and run commands inside the fence.",
    )?;
    tell("   all: anything, without a fence; for machines made for it.")?;
    again(
        || match ask("   read, workspace or all", Some("workspace"))?.as_str() {
            "read" => Ok(InitApproval::Read),
            "workspace" => Ok(InitApproval::Workspace),
            "all" => Ok(InitApproval::All),
            other => bail!("`{other}` is none of read, workspace and all"),
        },
    )
}

/// Asks until the answer can be used. That there is no answer ends it.
fn again<T>(mut question: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match question() {
            Err(error) if error.is::<io::Error>() => return Err(error),
            Err(error) => tell(&format!("   {error:#}"))?,
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

fn tell(line: &str) -> Result<()> {
    writeln!(io::stderr(), "{}", sanitize(line)).context("nobody can be asked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_keys() {
        for (text, wanted) in [
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
            assert_eq!(place(text).expect(text), wanted);
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
            let error = place(key).expect_err(key).to_string();
            assert!(!error.contains(key), "{error}");
        }
    }
}
