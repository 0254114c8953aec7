//! `fs/watch`: notify the client when a path changes, until `fs/unwatch` or the end of the
//! connection.

use std::collections::HashMap;
use std::sync::Arc;

use raddle_protocol::methods::FsWatch;
use raddle_protocol::{FsWatchParams, FsWatchResponse};

use crate::call::Request;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::services::watches::{PathWatcher, Watch};
use crate::session::Session;
use crate::wire_error::{WireError, quoted};

/// Limit: watches of one connection; beyond it, the server returns an error.
const WATCHES_MAX: usize = 64;

/// Limit: the name of a watch; beyond it, the server returns an error.
///
/// Every notification carries it.
const NAME_BYTES_MAX: usize = 256;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<FsWatch>,
) -> Result<FsWatchResponse, WireError> {
    let Request { params, session } = request;
    let admission = PathAdmission::of(&state, &session).await;
    begin(params, &session, &state.watcher, admission).await
}

async fn begin(
    params: FsWatchParams,
    session: &Arc<Session>,
    watcher: &PathWatcher,
    admission: PathAdmission,
) -> Result<FsWatchResponse, WireError> {
    let FsWatchParams { watch_id, path } = params;
    if watch_id.len() > NAME_BYTES_MAX {
        return Err(WireError::Refused(
            format!(
                "watchId has {} bytes; it may have {NAME_BYTES_MAX}",
                watch_id.len()
            )
            .into(),
        ));
    }
    let watched = files::absolute(&path)?;
    may_begin(&session.watches(), &watch_id)?;
    let watch = Watch::begin(watch_id.clone(), watched, admission, session, watcher).await?;
    // The lane serialises requests for the same name, but not those for other names.
    let mut watches = session.watches();
    may_begin(&watches, &watch_id)?;
    watches.insert(watch_id, watch);
    Ok(FsWatchResponse { path })
}

fn may_begin(watches: &HashMap<String, Watch>, watch_id: &str) -> Result<(), WireError> {
    if watches.contains_key(watch_id) {
        return Err(WireError::Refused(
            format!("watchId already exists: {}", quoted(watch_id)).into(),
        ));
    }
    if watches.len() >= WATCHES_MAX {
        return Err(WireError::Refused(
            format!("a connection may have {WATCHES_MAX} watches").into(),
        ));
    }
    Ok(())
}
