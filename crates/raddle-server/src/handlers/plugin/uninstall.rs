//! `plugin/uninstall`: remove a plugin from the user's configuration, stop it, and remove its approvals
//! and its state.

use std::sync::Arc;

use raddle_config::PluginConfig;
use raddle_protocol::PluginUninstallResponse;
use raddle_protocol::methods::PluginUninstall;

use crate::call::Request;
use crate::services::ServerState;
use crate::services::skill_settings::SkillSettings;
use crate::wire_error::WireError;

pub(crate) async fn handle(
    state: Arc<ServerState>,
    request: Request<PluginUninstall>,
) -> Result<PluginUninstallResponse, WireError> {
    let Request { params, session } = request;
    let skill_settings = SkillSettings::of(&state);
    let (config, writer) = (PluginConfig::of(&state.config), session.config_writer());
    let id = params.plugin_id.clone();
    let work = move || config.uninstall(&id, writer);
    state.home.run(&session.outgoing, work).await??;
    state.plugins.reload().await;
    // The plugin is stopped, so it writes neither again.
    state.plugins.forget(&params.plugin_id).await;
    skill_settings.announce_change();
    Ok(PluginUninstallResponse {})
}
