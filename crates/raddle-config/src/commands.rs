//! The configuration of commands: the hosts that they may reach, and how strong their sandbox must
//! be.

use std::sync::Arc;

use raddle_sandbox::egress::EgressRules;

use crate::config::{Config, State};
use crate::config_error::ConfigError;
use crate::setting_error::SettingError;

impl State {
    /// Returns the hosts that commands with network access may reach: those that `sandbox_network`
    /// lists, else every public host.
    pub fn hosts(&self) -> Result<EgressRules, SettingError> {
        let invalid = |what: String| {
            SettingError::Refused(format!("sandbox_network in the configuration: {what}"))
        };
        let table = match self.value("sandbox_network") {
            None => return Ok(EgressRules::all_public()),
            Some(toml::Value::Table(table)) => table,
            Some(_) => {
                return Err(invalid(
                    "it must be a table with `allow` and `deny`".to_owned(),
                ));
            }
        };
        let (mut allow, mut deny) = (Vec::new(), Vec::new());
        for (key, value) in table {
            let list = match key.as_str() {
                "allow" => &mut allow,
                "deny" => &mut deny,
                _ => {
                    return Err(invalid(format!(
                        "`{key}` is unknown; use `allow` or `deny`"
                    )));
                }
            };
            let hosts: Option<Vec<&str>> = value
                .as_array()
                .and_then(|hosts| hosts.iter().map(toml::Value::as_str).collect());
            *list = hosts.ok_or_else(|| invalid(format!("`{key}` must be a list of hosts")))?;
        }
        EgressRules::parse(allow, deny).map_err(|it| invalid(it.to_string()))
    }

    /// Whether the operator accepts the second tier for commands that write folders.
    pub fn accepts_second_tier(&self) -> bool {
        self.text("sandbox_accept_tier") == Some("B")
    }
}

/// Reason why the configuration of commands cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CommandConfigError {
    /// A file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A value is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// The configuration of commands, current at each call. Cheap to clone; each call may block on the
/// disk.
#[derive(Clone, Debug)]
pub struct CommandConfig {
    config: Arc<Config>,
}

impl CommandConfig {
    /// Returns the part of a configuration that is about commands.
    pub fn of(config: &Arc<Config>) -> Self {
        let config = config.clone();
        Self { config }
    }

    /// Returns the hosts that commands with network access may reach, or why that configuration is
    /// invalid.
    pub fn hosts(&self) -> Result<EgressRules, CommandConfigError> {
        Ok(self.config.refresh()?.hosts()?)
    }

    /// Whether the configuration lists the hosts that commands may reach.
    pub fn lists_hosts(&self) -> bool {
        self.config.state().value("sandbox_network").is_some()
    }

    /// Whether the server keeps checkpoints of the files that turns change. Does not block: reads
    /// the configuration as last loaded.
    pub fn has_checkpoints(&self) -> bool {
        let state = self.config.state();
        let checkpoints = state.value("checkpoints");
        let enabled = checkpoints.and_then(|it| it.get("enabled"));
        enabled.and_then(toml::Value::as_bool).unwrap_or(true)
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
        state.is_ok_and(|state| state.accepts_second_tier())
    }
}
