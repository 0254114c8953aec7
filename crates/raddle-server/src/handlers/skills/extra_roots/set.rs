//! `skills/extraRoots/set`: set further folders of the user's skills, until the server ends.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_protocol::methods::SkillsExtraRootsSet;
use raddle_protocol::{
    SkillsChangedNotification, SkillsExtraRootsSetParams, SkillsExtraRootsSetResponse,
};

use crate::call::Call;
use crate::services::{ServerState, files};
use crate::wire_error::WireError;

/// Limit: folders of skills beside the usual ones; beyond it, the server rejects the request with
/// -32600.
const ROOTS_MAX: usize = 64;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<SkillsExtraRootsSet>) {
    let Call { params, reply, .. } = call;
    let roots = match roots(params) {
        Ok(roots) => roots,
        Err(error) => return reply.error(error),
    };
    let is_changed = state.skill_roots.set(roots);
    reply.ok(&SkillsExtraRootsSetResponse {});
    if is_changed {
        state.threads.announce(SkillsChangedNotification {}.into());
    }
}

fn roots(params: SkillsExtraRootsSetParams) -> Result<Vec<PathBuf>, WireError> {
    let roots = params.extra_roots;
    if roots.len() > ROOTS_MAX {
        let what = format!("extraRoots has more than {ROOTS_MAX} folders");
        return Err(WireError::Refused(what.into()));
    }
    roots.iter().map(|it| files::absolute(it)).collect()
}
