//! `skills/config/write`: enable or disable a skill, in the user's configuration.

use std::sync::Arc;

use raddle_config::skills::SkillSelector;
use raddle_protocol::methods::SkillsConfigWrite;
use raddle_protocol::{SkillsConfigWriteParams, SkillsConfigWriteResponse};

use crate::call::Call;
use crate::services::{ServerState, files};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<SkillsConfigWrite>) {
    let (config, writer) = (state.config.clone(), call.session.config_writer());
    call.at_home(state, move |params| {
        let enabled = params.enabled;
        let selector = selector(params)?;
        let unusable =
            |error: raddle_config::ConfigError| WireError::Refused(error.to_string().into());
        let before = config.refresh().map_err(unusable)?;
        let edit = selector.edit(&before, enabled);
        config.write(&[edit], None, None, writer)?;
        let now = config.refresh().map_err(unusable)?;
        Ok(SkillsConfigWriteResponse {
            effective_enabled: selector.is_enabled(&now),
        })
    })
    .await;
}

fn selector(params: SkillsConfigWriteParams) -> Result<SkillSelector, WireError> {
    match (params.name, params.path) {
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
