//! `config/batchWrite`: write several values of the user's configuration, all or none.

use std::sync::Arc;

use raddle_protocol::ConfigBatchWriteParams;
use raddle_protocol::methods::ConfigBatchWrite;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::skill_settings::SkillSettings;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ConfigBatchWrite>) {
    // `reloadUserConfig` needs no work: the new values are in force when the response is sent.
    let (config, writer) = (state.config.clone(), call.session.config_writer());
    let skill_settings = SkillSettings::of(&state);
    let announce = move || skill_settings.announce_change();
    let work = move |params: ConfigBatchWriteParams| {
        Ok(config.write(
            &params.edits,
            params.expected_version.as_deref(),
            params.file_path.as_deref(),
            writer,
        )?)
    };
    call.at_home(state, work, announce).await;
}
