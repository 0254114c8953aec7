//! `plugin/call`: call a method of a plugin on behalf of the client.

use std::sync::Arc;

use raddle_core::ports::PluginRequest;
use raddle_protocol::PluginCallResponse;
use raddle_protocol::methods::PluginCall;

use crate::call::Request;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

const NO_EXTENSION: &str = "plugin/call requires the extension `raddle/plugins`; name it in \
                            capabilities.extensions of initialize";

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<PluginCall>,
) -> Result<PluginCallResponse, WireError> {
    let Request { params, session } = request;
    if session.client().is_none_or(|it| !it.has_plugins) {
        return Err(WireError::Refused(NO_EXTENSION.into()));
    }
    let settings = threads::settings_of(&state, params.thread_id).await?;
    let plugins = &state.plugins;
    let names = plugins.rule_names(&params.plugin_id, &params.method).await;
    let rules = settings.clone().unwrap_or_default();
    let objection = state.threads.objection_to_tool(&names, &rules).await;
    if let Some(objection) = objection {
        return Err(WireError::Refused(objection.into()));
    }
    let called = plugins.call(PluginRequest {
        plugin: params.plugin_id,
        method: params.method,
        params: params.params,
        settings,
    });
    Ok(PluginCallResponse {
        result: called.await?,
    })
}
