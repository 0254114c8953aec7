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
    let config = rooms.config.clone();
    let is_whole = call.params.cursor.is_none() && call.params.limit.is_none();
    if is_whole && let Some(state) = config.unchanged() {
        return match whole(&state, &config) {
            Ok(list) => call.reply.written(list),
            Err(error) => call.reply.error(error),
        };
    }
    call.at_home(rooms, move |params| {
        // A file that has become unusable is told by `config/read`; what was read before is in force.
        let state = config.refresh().unwrap_or_else(|_| config.state());
        page(&state, &config, params.cursor.as_deref(), params.limit)
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
