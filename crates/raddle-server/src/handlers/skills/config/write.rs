//! `skills/config/write`: enable or disable a skill, in the user's configuration.

use std::sync::Arc;

use raddle_config::SKILL_NAME_BYTES_MAX;
use raddle_config::skills::SkillSelector;
use raddle_protocol::methods::SkillsConfigWrite;
use raddle_protocol::{SkillsConfigWriteParams, SkillsConfigWriteResponse};

use crate::call::Call;
use crate::services::skill_settings::SkillSettings;
use crate::services::{ServerState, files};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<SkillsConfigWrite>) {
    let (config, writer) = (state.config.clone(), call.session.config_writer());
    let skill_settings = SkillSettings::of(&state);
    let announce = move || skill_settings.announce_change();
    let work = move |params: SkillsConfigWriteParams| {
        let enabled = params.enabled;
        let effective_enabled = selector(params)?.write(&config, enabled, writer)?;
        Ok(SkillsConfigWriteResponse { effective_enabled })
    };
    call.at_home(state, work, announce).await;
}

fn selector(params: SkillsConfigWriteParams) -> Result<SkillSelector, WireError> {
    match (params.name, params.path) {
        // No skill has a longer name.
        (Some(name), None) if name.len() > SKILL_NAME_BYTES_MAX => {
            let bytes = name.len();
            let what = format!("name has {bytes} bytes; it may have {SKILL_NAME_BYTES_MAX}");
            Err(WireError::Refused(what.into()))
        }
        (Some(name), None) => Ok(SkillSelector::Name(name)),
        (None, Some(path)) => {
            files::absolute(&path)?;
            Ok(SkillSelector::Path(path))
        }
        _ => Err(WireError::InvalidParams(
            "skills/config/write requires exactly one of path or name",
        )),
    }
}
