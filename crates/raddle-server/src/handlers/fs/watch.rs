//! `fs/watch`: be told when a path changes, until `fs/unwatch` or the end of the connection.

use std::collections::HashMap;
use std::sync::Arc;

use raddle_protocol::methods::FsWatch;
use raddle_protocol::{FsWatchParams, FsWatchResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::services::watches::{PathWatcher, Watch};
use crate::session::Session;
use crate::wire_error::{WireError, shown};

/// How many watches one connection may have.
const WATCHES_MAX: usize = 64;

/// The longest name of a watch. Every notification carries it.
const NAME_BYTES_MAX: usize = 256;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<FsWatch>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let admission = PathAdmission::of(&rooms, &session).await;
        reply.finish(begin(params, &session, &rooms.watcher, admission).await);
    });
}

async fn begin(
    params: FsWatchParams,
    session: &Arc<Session>,
    lookout: &PathWatcher,
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
    let watch = Watch::begin(watch_id.clone(), watched, admission, session, lookout).await?;
    // The lane kept others of the same name waiting, but not those of other names.
    let mut watches = session.watches();
    may_begin(&watches, &watch_id)?;
    watches.insert(watch_id, watch);
    Ok(FsWatchResponse { path })
}

fn may_begin(watches: &HashMap<String, Watch>, watch_id: &str) -> Result<(), WireError> {
    if watches.contains_key(watch_id) {
        return Err(WireError::Refused(
            format!("watchId already exists: {}", shown(watch_id)).into(),
        ));
    }
    if watches.len() >= WATCHES_MAX {
        return Err(WireError::Refused(
            format!("a connection may have {WATCHES_MAX} watches").into(),
        ));
    }
    Ok(())
}
