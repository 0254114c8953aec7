//! `hooks/list`: the hooks that apply in some folders. The server runs none.

use std::sync::Arc;

use raddle_protocol::methods::HooksList;
use raddle_protocol::{HooksListEntry, HooksListResponse};

use crate::call::Request;
use crate::services::{ServerState, files, threads};
use crate::wire_error::WireError;

/// The maximum number of folders of one request.
const FOLDERS_MAX: usize = 64;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<HooksList>,
) -> Result<HooksListResponse, WireError> {
    let params = request.params;
    let mut folders = params.cwds;
    if folders.len() > FOLDERS_MAX {
        let what = format!("cwds has more than {FOLDERS_MAX} folders");
        return Err(WireError::Refused(what.into()));
    }
    for folder in &folders {
        files::refuse_too_long(folder)?;
    }
    match params.thread_id {
        Some(_) if !folders.is_empty() => {
            return Err(WireError::Refused("specify either threadId or cwds".into()));
        }
        Some(id) => {
            let peek = state.threads.peek(id).await;
            let peek = peek.map_err(|error| threads::refused(id, error))?;
            folders.push(peek.thread.settings().cwd.clone());
        }
        None if folders.is_empty() => {
            folders.push(std::env::current_dir()?.display().to_string());
        }
        None => {}
    }
    let entries = folders.into_iter().map(|cwd| HooksListEntry {
        cwd,
        errors: Vec::new(),
        hooks: Vec::new(),
        warnings: Vec::new(),
    });
    Ok(HooksListResponse {
        data: entries.collect(),
    })
}
