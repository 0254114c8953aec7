//! The operator's limits on commands that clients run themselves.

use raddle_core::Sandbox;
use raddle_sandbox::{Launch, egress};

use crate::services::ServerState;
use crate::wire_error::WireError;

/// Rejects a command that the operator does not allow.
pub(crate) async fn allowed(
    state: &ServerState,
    launch: &Launch,
    sandbox: Sandbox,
) -> Result<(), WireError> {
    let argv = std::iter::once(&launch.program).chain(&launch.args);
    let argv = argv.map(|it| it.to_string_lossy().into_owned()).collect();
    match state.threads.objection(argv, sandbox).await {
        Some(why) => Err(WireError::Refused(
            format!("the command may not run: {why}").into(),
        )),
        None => Ok(()),
    }
}

/// Removes the hosts that the operator closes.
pub(crate) async fn without_closed(
    state: &ServerState,
    hosts: egress::EgressRules,
) -> Result<egress::EgressRules, WireError> {
    let closed = state.threads.closed_hosts().await;
    let closed = closed.ok_or(WireError::Dropped)?;
    hosts
        .without(closed.iter().map(String::as_str))
        .map_err(|error| WireError::Refused(format!("the rules cannot be used: {error}").into()))
}
