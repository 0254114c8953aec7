//! What live threads stand on: where models are, and how commands are started.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_sandbox::{Launcher, SandboxService, SearchPath, egress};

use super::config::Config;
use super::processes;
use super::providers::Providers;
use crate::wire_error::WireError;

/// What whoever makes the live threads is given.
#[derive(Debug)]
pub struct AgentDeps {
    /// Where models are.
    pub providers: Providers,
    /// Starts commands.
    pub launcher: Launcher,
    /// The fence around them.
    pub sandbox: SandboxService,
    /// What the configuration says of commands.
    pub commands: CommandConfig,
    /// What commands in a sandbox do not see.
    pub hidden_paths: Vec<PathBuf>,
    /// Where commands look for programs.
    pub path: SearchPath,
}

/// What the configuration says of commands, as it is when it is asked. Cheap to clone; each question may wait
/// for the disk.
#[derive(Clone, Debug)]
pub struct CommandConfig {
    config: Arc<Config>,
}

impl CommandConfig {
    pub(super) fn of(config: &Arc<Config>) -> Self {
        let config = config.clone();
        Self { config }
    }

    /// Whom those that may use the network can reach, or what is wrong with what is said of that.
    pub fn hosts(&self) -> Result<egress::EgressRules, String> {
        let state = self.config.refresh().map_err(|error| error.to_string())?;
        processes::hosts(&state).map_err(|error| match error {
            WireError::Refused(why) => why.into_owned(),
            _ => "the configuration cannot be used".to_owned(),
        })
    }

    /// Whether the model may ask for a login shell. Does not wait: it is as the configuration was last read.
    pub fn allows_login_shell(&self) -> bool {
        let state = self.config.state();
        state.value("allow_login_shell") == Some(&toml::Value::Boolean(true))
    }

    /// Whether they may write folders in a fence of the second tier.
    pub fn accepts_second(&self) -> bool {
        let state = self.config.refresh();
        state.is_ok_and(|state| processes::accepts_second(&state))
    }
}
