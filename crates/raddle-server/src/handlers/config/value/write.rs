//! `config/value/write`: write one value of the user's configuration.

use std::sync::Arc;

use raddle_protocol::methods::ConfigValueWrite;
use raddle_protocol::{ConfigEdit, ConfigValueWriteParams};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::skill_settings::SkillSettings;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ConfigValueWrite>) {
    let (config, writer) = (state.config.clone(), call.session.config_writer());
    let skill_settings = SkillSettings::of(&state);
    let announce = move || skill_settings.announce_change();
    let work = move |params: ConfigValueWriteParams| {
        let edit = ConfigEdit {
            key_path: params.key_path,
            value: params.value,
            merge_strategy: params.merge_strategy,
        };
        Ok(config.write(
            &[edit],
            params.expected_version.as_deref(),
            params.file_path.as_deref(),
            writer,
        )?)
    };
    call.at_home(state, work, announce).await;
}
