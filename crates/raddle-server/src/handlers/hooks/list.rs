//! `hooks/list`: the hooks that apply in some folders. The server runs none.

use std::sync::Arc;

use raddle_protocol::methods::HooksList;
use raddle_protocol::{HooksListEntry, HooksListResponse};

use crate::call::Request;
use crate::services::{ServerState, files, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<HooksList>,
) -> Result<HooksListResponse, WireError> {
    let params = request.params;
    let mut folders = params.cwds;
    files::check_cwds(&folders)?;
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
