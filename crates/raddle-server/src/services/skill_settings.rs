//! The settings of skills in the configuration, around a write.

use std::sync::Arc;

use raddle_agent::Threads;
use raddle_config::{Config, State, skills};
use raddle_protocol::SkillsChangedNotification;

use super::ServerState;

/// The settings of skills before a write of the configuration.
pub(crate) struct SkillSettings {
    config: Arc<Config>,
    threads: Threads,
    before: Arc<State>,
}

impl SkillSettings {
    pub(crate) fn of(state: &ServerState) -> Self {
        Self {
            config: state.config.clone(),
            threads: state.threads.clone(),
            before: state.config.state(),
        }
    }

    /// Notifies all clients if the settings are others now.
    pub(crate) fn announce_change(self) {
        if !skills::has_same_settings(&self.before, &self.config.state()) {
            self.threads.announce(SkillsChangedNotification {}.into());
        }
    }
}
