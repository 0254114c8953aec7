//! The configured model, its provider, and whether its key is there.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use raddle_server::{Chosen, Configuration, KeySource, Provider, Vendors};

use super::Finding;
use crate::home::Home;
use crate::model::Desk;
use crate::model_list;

const PART: &str = "model";

/// More than any key has.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// Looks at what is here; asks nobody.
pub(super) fn look(home: &Home, config: &Configuration) -> Result<Finding> {
    let Chosen { model, provider } = match config.asked() {
        Some(Ok(chosen)) => chosen,
        Some(Err(error)) => {
            return Ok(Finding::broken(
                PART,
                error.to_string(),
                "see docs/models.md, or `raddle config set model PROVIDER/MODEL`",
            ));
        }
        None => {
            return Ok(Finding::odd(
                PART,
                "none is configured",
                "`raddle init` chooses one, or `raddle config set model PROVIDER/MODEL`",
            ));
        }
    };
    let name = format!("{model} of {}", provider.name);
    Ok(match key(home, &provider)? {
        Key::There(place) => Finding::well(PART, format!("{name}, {place}")),
        Key::Odd { says, mend } => Finding::odd(PART, format!("{name}, {says}"), mend),
        Key::Missing { says, mend } => Finding::broken(PART, format!("{name}, {says}"), mend),
    })
}

/// Asks the providers for their models.
pub(super) fn ask(home: &Home, config: &Configuration) -> Result<Vec<Finding>> {
    let answers = model_list::ask(home, config, model_list::quiet(config))?;
    let found = answers.into_iter().map(|(name, answer)| match answer {
        Ok(models) => Finding::well(
            "provider",
            format!("{name} answers, and has {} models", models.len()),
        ),
        Err(why) => Finding::broken(
            "provider",
            format!("{name} does not answer: {why}"),
            format!(
                "see what [model_providers.{name}] says in {}, and docs/models.md",
                config.user_file().display()
            ),
        ),
    });
    Ok(found.collect())
}

/// Whether a key is where it should be. None is shown.
enum Key {
    There(String),
    Odd { says: String, mend: String },
    Missing { says: String, mend: String },
}

fn key(home: &Home, provider: &Provider) -> Result<Key> {
    let name = &provider.name;
    Ok(match &provider.key {
        KeySource::None => Key::There("which takes no key".to_owned()),
        KeySource::Environment {
            variable,
            instructions,
        } => of_variable(variable, instructions.as_deref()),
        KeySource::File(path) => of_file(path),
        KeySource::Command(command) => Key::There(format!(
            "whose key `{}` writes (--online tries it)",
            command.program
        )),
        KeySource::Written(_) => Key::Odd {
            says: "whose key is in the configuration".to_owned(),
            mend: format!(
                "put it in a file and name that with key_file under [model_providers.{name}], or in a variable with env_key"
            ),
        },
        KeySource::Stored(sign_in) => {
            if is_signed_in(home, provider)? {
                return Ok(Key::There("which is signed in with".to_owned()));
            }
            match &sign_in.variable {
                Some(variable) => of_variable(variable, None),
                None => Key::Missing {
                    says: "which nobody is signed in with".to_owned(),
                    mend: "sign in with a client (account/login/start); docs/models.md says how"
                        .to_owned(),
                },
            }
        }
    })
}

fn of_variable(variable: &str, instructions: Option<&str>) -> Key {
    if std::env::var(variable).is_ok_and(|it| !it.trim().is_empty()) {
        return Key::There(format!("whose key is in {variable}"));
    }
    let how = instructions.map(|it| format!("; {it}")).unwrap_or_default();
    Key::Missing {
        says: format!("whose key should be in {variable}, which is not set"),
        mend: format!("export {variable}=… where the server is started{how}"),
    }
}

fn of_file(path: &Path) -> Key {
    let shown = path.display();
    let missing = |says: String| Key::Missing {
        says,
        mend: format!("write the key into {shown}, and chmod 600 it"),
    };
    match read(path) {
        Err(error) => missing(format!("whose key cannot be read from {shown}: {error}")),
        Ok(text) if text.trim().is_empty() => {
            missing(format!("whose key should be in {shown}, which is empty"))
        }
        Ok(_) => {
            let mode = std::fs::metadata(path).map_or(0, |it| it.permissions().mode());
            match mode & 0o077 {
                0 => Key::There(format!("whose key is in {shown}")),
                _ => Key::Odd {
                    says: format!("whose key others may read in {shown}"),
                    mend: format!("chmod 600 {shown}"),
                },
            }
        }
    }
}

/// What a file says, if it is one: a pipe may never say anything, and a device may never end.
fn read(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    let mut file = File::open(path)?.take(KEY_BYTES_MAX);
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn is_signed_in(home: &Home, provider: &Provider) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let _entered = runtime.enter();
    let desk = Desk::new(&home.state, None);
    // Credentials that cannot be read are those of nobody; a call says why.
    let account = runtime.block_on(desk.account(provider));
    Ok(account.is_ok_and(|it| it.is_some()))
}
