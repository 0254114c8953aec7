//! `model/list`: the models a turn may use.

use std::sync::Arc;

use raddle_protocol::ModelListResponse;
use raddle_protocol::methods::ModelList;
use serde_json::value::{RawValue, to_raw_value};

use crate::call::Call;
use crate::rooms::config::{Config, State};
use crate::rooms::{Rooms, models, pages};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ModelList>) {
    let Call { params, reply, .. } = call;
    let config = rooms.config.clone();
    rooms.look_at_config(move |looked| {
        let state = match looked {
            Ok(looked) => looked.in_force(),
            Err(error) => return reply.error(error),
        };
        if params.cursor.is_some() || params.limit.is_some() {
            let page = page(&state, &config, params.cursor.as_deref(), params.limit);
            return reply.finish(page);
        }
        match whole(&state, &config) {
            Ok(list) => reply.written(list),
            Err(error) => reply.error(error),
        }
    });
}

/// The whole list, which every client asks for at its start and which changes only with the configuration.
fn whole<'a>(state: &'a State, config: &Config) -> Result<&'a RawValue, WireError> {
    if let Some(list) = state.model_list.get() {
        return Ok(list);
    }
    let list = page(state, config, None, None)?;
    let list = to_raw_value(&list).map_err(|_| WireError::Dropped)?;
    Ok(state.model_list.get_or_init(|| list))
}

fn page(
    state: &State,
    config: &Config,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<ModelListResponse, WireError> {
    let models = models::configured(state, config.user_file());
    let (data, next_cursor) = pages::page(models, cursor, limit)?;
    Ok(ModelListResponse { data, next_cursor })
}
