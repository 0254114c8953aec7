//! `experimentalFeature/list`: the features that can be switched. There are none.

use std::sync::Arc;

use raddle_protocol::ExperimentalFeatureListResponse;
use raddle_protocol::methods::ExperimentalFeatureList;

use crate::call::Request;
use crate::services::{ServerState, pages, threads};
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<ExperimentalFeatureList>,
) -> Result<ExperimentalFeatureListResponse, WireError> {
    let params = request.params;
    threads::check_exists(&state, params.thread_id).await?;
    let (data, next_cursor) = pages::page(Vec::new(), params.cursor.as_deref(), params.limit)?;
    Ok(ExperimentalFeatureListResponse { data, next_cursor })
}
