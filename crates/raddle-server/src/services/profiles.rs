//! The permission profiles that clients may use: those that the operator's rules allow.

use raddle_config::{EffectiveConfig, permissions};
use raddle_core::{PermissionProfile, Sandbox};
use raddle_protocol::PermissionProfileSummary;

use crate::services::{ServerState, sandbox_policy};
use crate::wire_error::WireError;

/// Rejects a profile that a client chose and the operator does not allow.
pub(crate) async fn allowed(
    state: &ServerState,
    profile: Option<&PermissionProfile>,
    sandbox: &Sandbox,
) -> Result<(), WireError> {
    let Some(profile) = profile else {
        return Ok(());
    };
    let (threads, sandbox) = (state.threads.clone(), [sandbox.clone()]);
    let check = tokio::task::spawn_blocking(move || threads.objections_to_sandboxes(&sandbox));
    let objections = check.await.map_err(|_| WireError::Dropped)?;
    match objections.into_iter().flatten().next() {
        Some(why) => Err(WireError::ProfileNotAllowed {
            id: profile.id.clone(),
            why,
        }),
        None => Ok(()),
    }
}

/// Returns all profiles for clients. A profile that cannot be enforced is marked as not allowed.
pub(crate) fn list(
    state: &ServerState,
    config: &EffectiveConfig<'_>,
) -> Vec<PermissionProfileSummary> {
    let ids = permissions::ids(config);
    let sandbox_of = |id: &String| {
        let choice = permissions::of_profile(config, id).ok()?;
        sandbox_policy::of_choice(&choice).ok()
    };
    let sandboxes: Vec<Option<Sandbox>> = ids.iter().map(sandbox_of).collect();
    let usable: Vec<Sandbox> = sandboxes.iter().flatten().cloned().collect();
    let objections = state.threads.objections_to_sandboxes(&usable);
    let mut objections = objections.into_iter();
    let summaries = ids.into_iter().zip(sandboxes).map(|(id, sandbox)| {
        let description = permissions::description(config, &id).map(str::to_owned);
        PermissionProfileSummary {
            allowed: sandbox.is_some() && objections.next().flatten().is_none(),
            description,
            id,
        }
    });
    summaries.collect()
}
