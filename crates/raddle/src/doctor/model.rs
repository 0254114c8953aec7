//! Checks of the configured model, its provider, and the presence of its key.

use std::fs::File;
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::slice;
use std::time::Duration;

use anyhow::Result;
use raddle_config::{Configuration, KeySource, Provider, ProviderChoice};
use raddle_model::Endpoint;

use super::Finding;
use crate::home::Home;
use crate::login;
use crate::model_list;

const PART: &str = "model";
const PROVIDER: &str = "provider";

/// How long a port of this machine may take to accept a connection.
const PORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Longer than any key.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// Checks the configuration of the model. Makes no network requests.
pub(super) fn look(home: &Home, config: &Configuration) -> Result<Finding> {
    let ProviderChoice { model, provider } = match config.provider_choice() {
        Some(Ok(chosen)) => chosen,
        Some(Err(error)) => {
            return Ok(Finding::error(
                PART,
                error.to_string(),
                "see docs/models.md, or `raddle config set model PROVIDER/MODEL`",
            ));
        }
        None => {
            return Ok(Finding::error(
                PART,
                "none is configured, so no turn can run",
                "`raddle init` chooses one, or `raddle config set model PROVIDER/MODEL`",
            ));
        }
    };
    let name = format!("{model} of {}", provider.name);
    Ok(match key(home, &provider)? {
        KeyState::Present(location) => Finding::ok(PART, format!("{name}, {location}")),
        KeyState::Suspect { message, fix } => {
            Finding::warning(PART, format!("{name}, {message}"), fix)
        }
        KeyState::Missing { message, fix } => {
            Finding::error(PART, format!("{name}, {message}"), fix)
        }
    })
}

/// Tries the port of the model's provider. `None` if the provider is not on this machine.
pub(super) fn try_port(config: &Configuration) -> Option<Finding> {
    let Some(Ok(ProviderChoice { provider, .. })) = config.provider_choice() else {
        return None;
    };
    let name = &provider.name;
    let file = config.user_file().display();
    let endpoint = match provider.base_url.parse::<Endpoint>() {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let fix = format!("correct base_url of [model_providers.{name}] in {file}");
            return Some(Finding::error(PROVIDER, error.to_string(), fix));
        }
    };
    let (host, port) = endpoint.loopback()?;
    Some(match connect(host, port) {
        Ok(()) => Finding::ok(PROVIDER, format!("{name} listens on {host}:{port}")),
        Err(error) => Finding::error(
            PROVIDER,
            format!("{name} does not answer on {host}:{port}: {error}"),
            format!(
                "start its model server, or set base_url of [model_providers.{name}] in {file}"
            ),
        ),
    })
}

/// Opens a connection to one of the addresses of a host, and closes it.
fn connect(host: &str, port: u16) -> io::Result<()> {
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for address in (host, port).to_socket_addrs()? {
        result = TcpStream::connect_timeout(&address, PORT_TIMEOUT).map(drop);
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Requests the model lists of the providers.
pub(super) fn ask(home: &Home, config: &Configuration) -> Result<Vec<Finding>> {
    let answers = model_list::ask(home, config, model_list::default_providers(config))?;
    let findings = answers.into_iter().map(|(name, answer)| match answer {
        Ok(models) => Finding::ok(
            PROVIDER,
            format!("{name} answers, and has {} models", models.len()),
        ),
        Err(why) => Finding::error(
            PROVIDER,
            format!("{name} does not answer: {why}"),
            format!(
                "see what [model_providers.{name}] says in {}, and docs/models.md",
                config.user_file().display()
            ),
        ),
    });
    Ok(findings.collect())
}

/// Whether a key is present. The key itself is never shown.
enum KeyState {
    Present(String),
    Suspect { message: String, fix: String },
    Missing { message: String, fix: String },
}

fn key(home: &Home, provider: &Provider) -> Result<KeyState> {
    let name = &provider.name;
    Ok(match &provider.key {
        KeySource::None => KeyState::Present("which takes no key".to_owned()),
        KeySource::Environment {
            variable,
            instructions,
        } => of_variable(variable, instructions.as_deref()),
        KeySource::File(path) => of_file(path),
        KeySource::Command(command) => KeyState::Present(format!(
            "whose key `{}` writes (--online tries it)",
            command.program
        )),
        KeySource::Inline(_) => KeyState::Suspect {
            message: "whose key is in the configuration".to_owned(),
            fix: format!(
                "put it in a file and name that with key_file under [model_providers.{name}], or in a variable with env_key"
            ),
        },
        KeySource::Stored(sign_in) => {
            if login::logged_in(home, slice::from_ref(provider))?.contains(&true) {
                return Ok(KeyState::Present("which is signed in with".to_owned()));
            }
            match &sign_in.variable {
                Some(variable) => of_variable(variable, None),
                None => KeyState::Missing {
                    message: "which no user is signed in with".to_owned(),
                    fix: format!("`raddle login {name}` signs in; docs/models.md says how"),
                },
            }
        }
    })
}

fn of_variable(variable: &str, instructions: Option<&str>) -> KeyState {
    if std::env::var(variable).is_ok_and(|it| !it.trim().is_empty()) {
        return KeyState::Present(format!("whose key is in {variable}"));
    }
    let how = instructions.map(|it| format!("; {it}")).unwrap_or_default();
    KeyState::Missing {
        message: format!("whose key should be in {variable}, which is not set"),
        fix: format!("export {variable}=… where the server is started{how}"),
    }
}

fn of_file(path: &Path) -> KeyState {
    let shown = path.display();
    let missing = |message: String| KeyState::Missing {
        message,
        fix: format!("write the key into {shown}, and chmod 600 it"),
    };
    match read(path) {
        Err(error) => missing(format!("whose key cannot be read from {shown}: {error}")),
        Ok(text) if text.trim().is_empty() => {
            missing(format!("whose key should be in {shown}, which is empty"))
        }
        Ok(_) => {
            let mode = std::fs::metadata(path).map_or(0, |it| it.permissions().mode());
            match mode & 0o077 {
                0 => KeyState::Present(format!("whose key is in {shown}")),
                _ => KeyState::Suspect {
                    message: format!("whose key others may read in {shown}"),
                    fix: format!("chmod 600 {shown}"),
                },
            }
        }
    }
}

/// Reads a regular file. A pipe may never deliver data, and a device may never end.
fn read(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    let mut file = File::open(path)?.take(KEY_BYTES_MAX);
    file.read_to_string(&mut text)?;
    Ok(text)
}
