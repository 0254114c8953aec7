//! The address of the server: a child process, or a running server.

use std::ffi::OsString;

use raddle_client::{Program, ServerAddress, Stderr};

use super::error::UsageError;
use super::plan::Plan;
use super::vendor;

/// The default log level of a child server: the turn itself reports its failures.
const LOG: &str = "error";

/// Returns the address, or rejects invalid arguments.
pub(crate) fn find(plan: &Plan) -> Result<ServerAddress, UsageError> {
    let Some(remote) = &plan.options.remote else {
        return Ok(ServerAddress::Child(child(plan)?));
    };
    if plan.setting(vendor::ADDRESS).is_some() {
        let setting = vendor::ADDRESS;
        return Err(UsageError::OwnServerOnly { setting });
    }
    Ok(remote.clone())
}

/// This program as a server, which continues the turns of a server that was killed.
fn child(plan: &Plan) -> Result<Program, UsageError> {
    let program = std::env::current_exe().map_err(UsageError::OwnProgram)?;
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
