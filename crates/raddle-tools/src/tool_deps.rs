//! Dependencies of the tools: the operator's settings, and the state that calls share.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_config::CommandConfigError;
use raddle_core::policy::PathPattern;
use raddle_sandbox::{Launcher, SandboxService, SearchPath, egress};

use crate::command::{SentNotices, Terminals};
use crate::turn_diffs::TurnDiffs;

/// The operator's settings for commands. Each method but one may block on the disk.
pub trait Operator: Send + Sync {
    /// Returns the hosts that commands with network access may reach.
    fn hosts(&self) -> Result<egress::EgressRules, HostsError>;

    /// Whether commands may write folders in a second-tier sandbox, which protects no names there.
    fn accepts_second(&self) -> bool;

    /// Whether a call may ask for a login shell in its sandbox. This method does not block.
    fn allows_login_shell(&self) -> bool {
        false
    }

    /// Returns the paths below a readable folder that must not be read.
    fn closed_below(&self, folder: &str) -> Vec<PathPattern>;
}

/// Reason why the hosts that commands may reach are unknown.
#[derive(Debug, thiserror::Error)]
pub enum HostsError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] CommandConfigError),
    /// The rules name an invalid host.
    #[error("The rules cannot be used: {0}")]
    Rules(egress::BadRule),
}

pub(crate) struct ToolDeps {
    pub(crate) launcher: Launcher,
    pub(crate) sandbox: SandboxService,
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) own: Vec<PathBuf>,
    pub(crate) path: SearchPath,
    pub(crate) terminals: Terminals,
    pub(crate) diffs: Arc<TurnDiffs>,
    pub(crate) notices: SentNotices,
}
