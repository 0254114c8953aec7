//! The dependencies of live threads: model providers, and how commands are started.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_config::{CommandConfig, Providers};
use raddle_core::ports::Skills;
use raddle_sandbox::{Launcher, SandboxService, SearchPath};

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
    /// The skills that the model may use.
    pub skills: Arc<dyn Skills>,
}
