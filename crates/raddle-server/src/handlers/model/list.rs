//! `model/list`: the models that a turn may use. Queries the providers, and includes the models of
//! those that respond soon.

use std::sync::Arc;

use raddle_config::models::ModelsByProvider;
use raddle_config::{Config, State, models, providers};
use raddle_protocol::methods::ModelList;
use raddle_protocol::{ModelListParams, ModelListResponse};
use serde_json::value::{RawValue, to_raw_value};
use tracing::Instrument;

use crate::call::{Call, Reply};
use crate::services::{ServerState, pages};
use crate::wire_error::WireError;

pub(crate) fn handle(server: &Arc<ServerState>, call: Call<ModelList>) {
    let Call { params, reply, .. } = call;
    let shared_server = server.clone();
    server.read_config(move |snapshot| {
        let state = match snapshot {
            Ok(snapshot) => snapshot.in_force(),
            Err(error) => return reply.error(error),
        };
        let default_provider = models::default_provider(&state);
        let queried = providers::usable_providers(
            state.table(),
            default_provider,
            shared_server.config.user_file(),
        );
        let Some(vendors) = shared_server
            .options
            .vendors
            .clone()
            .filter(|_| !queried.is_empty())
        else {
            return answer(&shared_server, &state, &params, reply);
        };
        let span = reply.span().clone();
        let listing = async move {
            let known = shared_server.catalogue.of(queried, &vendors).await;
            let ModelListParams { cursor, limit, .. } = &params;
            reply.finish(page(
                &state,
                &shared_server.config,
                &known,
                cursor.as_deref(),
                *limit,
            ));
        };
        // The configuration may have been loaded for another request.
        tokio::spawn(listing.instrument(span));
    });
}

/// Responds without the models of providers.
fn answer(
    server: &ServerState,
    state: &Arc<State>,
    params: &ModelListParams,
    reply: Reply<ModelListResponse>,
) {
    if params.cursor.is_some() || params.limit.is_some() {
        let ModelListParams { cursor, limit, .. } = params;
        return reply.finish(page(state, &server.config, &[], cursor.as_deref(), *limit));
    }
    match whole(server, state) {
        Ok(list) => reply.written(&list),
        Err(error) => reply.error(error),
    }
}

/// Returns the whole list.
fn whole(server: &ServerState, state: &Arc<State>) -> Result<Arc<RawValue>, WireError> {
    server.model_list.get_or_make(state, || {
        let list = page(state, &server.config, &[], None, None)?;
        to_raw_value(&list).map_err(|_| WireError::Dropped)
    })
}

fn page(
    state: &State,
    config: &Config,
    known: &ModelsByProvider,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<ModelListResponse, WireError> {
    let models = models::all(state, config.user_file(), known);
    let (data, next_cursor) = pages::page(models, cursor, limit)?;
    Ok(ModelListResponse { data, next_cursor })
}
