//! `app/list`: the apps that the agent can use. There are none.

use std::sync::Arc;

use raddle_protocol::AppsListResponse;
use raddle_protocol::methods::AppList;

use crate::call::Request;
use crate::services::{ServerState, pages, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<AppList>,
) -> Result<AppsListResponse, WireError> {
    let params = request.params;
    threads::check_exists(&state, params.thread_id).await?;
    let (data, next_cursor) = pages::page(Vec::new(), params.cursor.as_deref(), params.limit)?;
    Ok(AppsListResponse { data, next_cursor })
}
