//! `thread/metadata/update`: change a thread's metadata. It appears in the response and in lists;
//! no notification is sent.

use std::sync::Arc;

use raddle_core::{ChangeMetadata, Command, view};
use raddle_protocol::methods::ThreadMetadataUpdate;
use raddle_protocol::{Maybe, ThreadMetadataUpdateResponse};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

/// The longest value: lists contain it.
const CHARS_MAX: usize = 4096;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ThreadMetadataUpdate>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if params.project_id.is_some() || params.daybreak_enabled.is_some() {
        let what = "only gitInfo can be changed here; leave out projectId and daybreakEnabled";
        return reply.error(WireError::Refused(what.into()));
    }
    let mut change = ChangeMetadata {
        principal: threads::principal(&session),
        ..ChangeMetadata::default()
    };
    if let Some(git) = params.git_info {
        for (member, name, value) in [
            (&mut change.branch, "branch", git.branch),
            (&mut change.origin, "originUrl", git.origin_url),
            (&mut change.sha, "sha", git.sha),
        ] {
            *member = match member_change(name, value) {
                Ok(change_of_member) => change_of_member,
                Err(error) => return reply.error(error),
            };
        }
    }
    let id = params.thread_id;
    let answer = reply.into_reply_to(move |done| {
        let changed = done.map(|done| ThreadMetadataUpdateResponse {
            thread: view(done.thread),
        });
        changed.map_err(|error| threads::refused(id, error))
    });
    let change = Command::ChangeMetadata(change);
    state.threads.send_command(id, change, answer).await;
}

/// Returns the change of a member: absence keeps it, null clears it.
fn member_change(name: &str, value: Maybe<String>) -> Result<Option<Option<String>>, WireError> {
    let text = match value {
        Maybe::Absent => return Ok(None),
        Maybe::Null => return Ok(Some(None)),
        Maybe::Value(text) => text,
    };
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed.chars().count() > CHARS_MAX {
        let what = format!("gitInfo.{name} has 1 to {CHARS_MAX} characters; null clears it");
        return Err(WireError::Refused(what.into()));
    }
    Ok(Some(Some(trimmed.to_owned())))
}
