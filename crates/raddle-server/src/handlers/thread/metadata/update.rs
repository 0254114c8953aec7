//! `thread/metadata/update`: change what is noted about a thread. Only its answer and lists tell of it.

use std::sync::Arc;

use raddle_core::{ChangeMetadata, Command, view};
use raddle_protocol::methods::ThreadMetadataUpdate;
use raddle_protocol::{Maybe, ThreadMetadataUpdateResponse};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

/// How long a member may be: lists show it.
const CHARS_MAX: usize = 4096;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ThreadMetadataUpdate>) {
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
        for (member, name, said) in [
            (&mut change.branch, "branch", git.branch),
            (&mut change.origin, "originUrl", git.origin_url),
            (&mut change.sha, "sha", git.sha),
        ] {
            *member = match wish(name, said) {
                Ok(wish) => wish,
                Err(error) => return reply.error(error),
            };
        }
    }
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let id = params.thread_id;
        let answer = reply.into_reply_to(move |done| {
            let changed = done.map(|done| ThreadMetadataUpdateResponse {
                thread: view(done.thread),
            });
            changed.map_err(|error| threads::refused(id, error))
        });
        let change = Command::ChangeMetadata(change);
        rooms.threads.send_command(id, change, answer).await;
    });
}

/// What is to become of a member: absence keeps it, null clears it.
fn wish(name: &str, said: Maybe<String>) -> Result<Option<Option<String>>, WireError> {
    let text = match said {
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
