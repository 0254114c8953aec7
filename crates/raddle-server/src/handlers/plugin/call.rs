//! `plugin/call`: call a method of a plugin on behalf of the client.

use std::sync::Arc;

use raddle_agent::{Delivery, Subscriber};
use raddle_core::ports::{PluginEventListener, PluginRequest};
use raddle_protocol::methods::PluginCall;
use raddle_protocol::{PluginCallResponse, ThreadId};

use crate::call::Request;
use crate::services::threads::SessionSubscriber;
use crate::services::{ServerState, threads};
use crate::session::Session;
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
        thread: params.thread_id,
        settings,
        connection: session.number,
        events: events(&session, params.thread_id),
    });
    Ok(PluginCallResponse {
        result: called.await?,
    })
}

/// Returns the receiver of the plugin's events: the client that makes the call, and no other.
fn events(session: &Arc<Session>, thread: Option<ThreadId>) -> PluginEventListener {
    let client = SessionSubscriber(Arc::downgrade(session));
    Box::new(move |event| {
        let event = Delivery::Notice(Arc::new(event.notification(thread)));
        client.is_connected() && client.has_capacity() && client.deliver(&event)
    })
}
