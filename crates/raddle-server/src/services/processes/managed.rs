//! What the operator holds fast for commands that clients run themselves.

use raddle_core::Sandbox;
use raddle_protocol::SandboxPolicy;
use raddle_sandbox::{Confinement, Launch, Policy, egress};

use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

/// Refuses what the operator does not allow.
pub(crate) async fn allowed(
    rooms: &ServerState,
    launch: &Launch,
    sandbox: Sandbox,
) -> Result<(), WireError> {
    let words = std::iter::once(&launch.program).chain(&launch.args);
    let words = words.map(|it| it.to_string_lossy().into_owned()).collect();
    match rooms.threads.objection(words, sandbox).await {
        Some(why) => Err(WireError::Refused(
            format!("the command may not run: {why}").into(),
        )),
        None => Ok(()),
    }
}

/// The hosts without those that the operator closes.
pub(crate) async fn without_closed(
    rooms: &ServerState,
    hosts: egress::EgressRules,
) -> Result<egress::EgressRules, WireError> {
    let closed = rooms.threads.closed_hosts().await;
    let closed = closed.ok_or(WireError::Dropped)?;
    hosts
        .without(closed.iter().map(String::as_str))
        .map_err(|error| WireError::Refused(format!("the rules cannot be used: {error}").into()))
}

/// The sandbox that a client gets, by the name that operators know.
pub(crate) fn sandbox(
    held: &Confinement,
    wished: Option<&SandboxPolicy>,
) -> Result<Sandbox, WireError> {
    if let Some(wished) = wished {
        return threads::sandbox(wished);
    }
    let network = held.network.is_some();
    Ok(match &held.policy {
        Policy::FullAccess => Sandbox::FullAccess,
        Policy::Confined(rules) if rules.write.is_empty() => Sandbox::ReadOnly {
            roots: Vec::new(),
            network,
        },
        Policy::Confined(_) => Sandbox::WorkspaceWrite {
            roots: Vec::new(),
            network,
            without_tmp: false,
            without_tmpdir: false,
        },
    })
}
