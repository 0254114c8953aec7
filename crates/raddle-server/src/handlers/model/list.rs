//! `model/list`: the models a turn may use.

use std::sync::Arc;

use raddle_protocol::ModelListResponse;
use raddle_protocol::methods::ModelList;
use serde_json::value::to_raw_value;

use crate::call::Call;
use crate::rooms::{Rooms, models, pages};

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<ModelList>) {
    let Call { params, reply, .. } = call;
    let config = rooms.config.state();
    let page = |cursor: Option<&str>, limit| {
        let (data, next_cursor) = pages::page(models::configured(&config), cursor, limit)?;
        Ok(ModelListResponse { data, next_cursor })
    };
    if params.cursor.is_some() || params.limit.is_some() {
        return reply.finish(page(params.cursor.as_deref(), params.limit));
    }
    // Nearly everyone asks for the whole list, and it changes only with the configuration.
    let written = match config.model_list.get() {
        Some(written) => written,
        None => match page(None, None).map(|list| to_raw_value(&list)) {
            Ok(Ok(list)) => config.model_list.get_or_init(|| list),
            Ok(Err(_)) => return,
            Err(error) => return reply.error(error),
        },
    };
    reply.written(written);
}
