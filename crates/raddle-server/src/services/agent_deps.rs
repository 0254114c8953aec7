//! The dependencies of live threads: model providers, and how commands are started.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_sandbox::{Launcher, SandboxService, SearchPath, egress};

use super::config::Config;
use super::processes;
use super::providers::Providers;
use crate::wire_error::WireError;

/// The dependencies from which the binary builds the live threads.
#[derive(Debug)]
pub struct AgentDeps {
    /// The model providers of the configuration.
    pub providers: Providers,
    /// Starts the processes of commands.
    pub launcher: Launcher,
    /// The sandbox around these processes.
    pub sandbox: SandboxService,
    /// The configuration of commands.
    pub commands: CommandConfig,
    /// Paths hidden from commands in a sandbox.
    pub hidden_paths: Vec<PathBuf>,
    /// The `PATH` of commands.
    pub path: SearchPath,
}

/// The configuration of commands, current at each call. Cheap to clone; each call may block on the
/// disk.
#[derive(Clone, Debug)]
pub struct CommandConfig {
    config: Arc<Config>,
}

impl CommandConfig {
    pub(super) fn of(config: &Arc<Config>) -> Self {
        let config = config.clone();
        Self { config }
    }

    /// Returns the hosts that commands with network access may reach, or why that configuration is
    /// invalid.
    pub fn hosts(&self) -> Result<egress::EgressRules, String> {
        let state = self.config.refresh().map_err(|error| error.to_string())?;
        processes::hosts(&state).map_err(|error| match error {
            WireError::Refused(why) => why.into_owned(),
            _ => "the configuration cannot be used".to_owned(),
        })
    }

    /// Whether the model may use a login shell. Does not block: reads the configuration as last
    /// loaded.
    pub fn allows_login_shell(&self) -> bool {
        let state = self.config.state();
        state.value("allow_login_shell") == Some(&toml::Value::Boolean(true))
    }

    /// Whether commands may write folders in a sandbox of the second tier.
    pub fn accepts_second(&self) -> bool {
        let state = self.config.refresh();
        state.is_ok_and(|state| processes::accepts_second(&state))
    }
}
