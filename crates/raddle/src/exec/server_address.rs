//! The address of the server: a child process, or a running server.

use std::ffi::OsString;
use std::path::PathBuf;

use raddle_client::{Program, ServerAddress, Stderr};

use super::plan::Plan;
use super::vendor;
use crate::home::Home;

/// The default log level of a child server: the turn itself reports its failures.
const LOG: &str = "error";

/// Returns the address, or rejects invalid arguments.
pub(super) fn find(plan: &Plan) -> Result<ServerAddress, String> {
    let Some(url) = &plan.options.remote else {
        return Ok(ServerAddress::Child(child(plan)?));
    };
    if plan.setting(vendor::ADDRESS).is_some() {
        let address = vendor::ADDRESS;
        return Err(format!(
            "{address} is for a server of our own; leave it or --remote out"
        ));
    }
    let token = match &plan.options.remote_auth_token_env {
        Some(name) => Some(
            std::env::var(name)
                .map_err(|_| format!("the environment variable {name} is not set"))?,
        ),
        None => None,
    };
    match url.strip_prefix("unix://") {
        Some("") => {
            let home = Home::find().map_err(|error| format!("{error:#}"))?;
            Ok(ServerAddress::Unix(home.socket()))
        }
        Some(path) => Ok(ServerAddress::Unix(PathBuf::from(path))),
        None if url.starts_with("ws://") => Ok(ServerAddress::WebSocket {
            url: url.clone(),
            token,
        }),
        None => Err(format!("--remote {url}: use ws://, unix://PATH or unix://")),
    }
}

/// This program as a server, which continues the turns of a server that was killed.
fn child(plan: &Plan) -> Result<Program, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find out which program this is: {error}"))?;
    let mut args: Vec<OsString> = [
        "app-server",
        "--recovery",
        "continue",
        "--session-source",
        "exec",
    ]
    .map(OsString::from)
    .into();
    for setting in vendor::normalize(&plan.settings) {
        args.extend(["-c".into(), setting.to_string().into()]);
    }
    let mut child = Program::new(program, args);
    child.stderr = Stderr::Inherit;
    if std::env::var_os("RADDLE_LOG").is_none() {
        child.env.push(("RADDLE_LOG".into(), LOG.into()));
    }
    Ok(child)
}
