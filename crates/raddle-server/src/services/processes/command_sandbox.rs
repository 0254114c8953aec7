//! The sandbox around the processes of clients.

use std::path::{Path, PathBuf};

use raddle_config::{SandboxFolders, State, has_network, policy_of};
use raddle_core::Sandbox;
use raddle_protocol::SandboxInfo;
use raddle_sandbox::{ConfinedProcess, Confinement, HoldConflict, Launch, Policy, SandboxService};

use crate::session::Session;
use crate::wire_error::WireError;

/// Returns the description of this machine's sandbox for clients.
pub(crate) fn info(sandbox: &SandboxService) -> SandboxInfo {
    match sandbox.measurement() {
        Some(it) => {
            let open = it.findings.iter().filter(|finding| !finding.stopped);
            SandboxInfo {
                kind: it.sandbox.tier().name().to_owned(),
                not_held: open.map(|it| it.attempt.shows.to_owned()).collect(),
            }
        }
        None => SandboxInfo {
            kind: if sandbox.is_pending() {
                "pending"
            } else {
                "none"
            }
            .to_owned(),
            not_held: Vec::new(),
        },
    }
}

/// Plans a launch inside a policy. Keep the result until the command has ended.
pub(crate) async fn wrap(
    sandbox: &SandboxService,
    session: &Session,
    launch: Launch,
    confinement: Confinement,
) -> Result<ConfinedProcess, WireError> {
    let plan = sandbox.plan(launch, confinement).await?;
    // A client that requested write access gets an error here, rather than a failing command.
    if let Some(HoldConflict { path, about }) = plan.conflicts().first() {
        return Err(WireError::Refused(
            format!(
                "{} must not change while an approved command runs outside the sandbox: {about}; wait until it has \
                 ended, or ask for readOnly",
                path.display()
            )
            .into(),
        ));
    }
    Ok(session
        .disk
        .run(&session.outgoing, || plan.wrap())
        .await??)
}

/// Returns the confinement of a command in a sandbox.
pub(crate) fn policy(
    sandbox: &Sandbox,
    config: &State,
    cwd: &Path,
    hidden_paths: &[PathBuf],
) -> Result<Confinement, WireError> {
    let folders = SandboxFolders {
        cwd: cwd.to_owned(),
        roots: Vec::new(),
        own: hidden_paths,
    };
    let Some(policy) = policy_of(sandbox, folders, |it| it.into()) else {
        let what = "the workspace would be the whole disk; name the folder with cwd, or ask for dangerFullAccess";
        return Err(WireError::Refused(what.into()));
    };
    let network = has_network(sandbox).then(|| config.hosts()).transpose()?;
    Ok(Confinement {
        accepts_second_tier: policy != Policy::FullAccess && config.accepts_second_tier(),
        policy,
        network,
    })
}
