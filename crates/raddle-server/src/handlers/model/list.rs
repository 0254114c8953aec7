//! `model/list`: the models a turn may use. What providers have is asked for now, and told if it comes soon.

use std::sync::Arc;

use raddle_protocol::methods::ModelList;
use raddle_protocol::{ModelListParams, ModelListResponse};
use serde_json::value::{RawValue, to_raw_value};

use crate::call::{Call, Reply};
use crate::services::config::{Config, State};
use crate::services::models::ModelsByProvider;
use crate::services::{ServerState, models, pages, providers};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<ModelList>) {
    let Call { params, reply, .. } = call;
    let asked = rooms.clone();
    rooms.read_config(move |looked| {
        let state = match looked {
            Ok(looked) => looked.in_force(),
            Err(error) => return reply.error(error),
        };
        let usual = models::usual_provider(&state);
        let told_of = providers::told_of(&state.merged, usual, asked.config.user_file());
        let Some(vendors) = asked
            .options
            .vendors
            .clone()
            .filter(|_| !told_of.is_empty())
        else {
            return answer(&state, &asked.config, &params, reply);
        };
        tokio::spawn(async move {
            let known = asked.catalogue.of(told_of, &vendors).await;
            let ModelListParams { cursor, limit, .. } = &params;
            reply.finish(page(
                &state,
                &asked.config,
                &known,
                cursor.as_deref(),
                *limit,
            ));
        });
    });
}

/// Without what providers have.
fn answer(
    state: &State,
    config: &Config,
    params: &ModelListParams,
    reply: Reply<ModelListResponse>,
) {
    if params.cursor.is_some() || params.limit.is_some() {
        let page = page(state, config, &[], params.cursor.as_deref(), params.limit);
        return reply.finish(page);
    }
    match whole(state, config) {
        Ok(list) => reply.written(list),
        Err(error) => reply.error(error),
    }
}

/// The whole list, which every client asks for at its start and which changes only with the configuration.
fn whole<'a>(state: &'a State, config: &Config) -> Result<&'a RawValue, WireError> {
    if let Some(list) = state.model_list.get() {
        return Ok(list);
    }
    let list = page(state, config, &[], None, None)?;
    let list = to_raw_value(&list).map_err(|_| WireError::Dropped)?;
    Ok(state.model_list.get_or_init(|| list))
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
