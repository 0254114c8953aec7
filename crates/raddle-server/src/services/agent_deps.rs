//! The dependencies of live threads: model providers, and how commands are started.

use std::path::PathBuf;
use std::sync::Arc;

use raddle_agent::Threads;
use raddle_config::{CommandConfig, HookConfig, McpConfig, PluginConfig, Providers};
use raddle_core::ports::{
    Checkpoints, McpServers, NoCheckpoints, NoMcpServers, NoPlugins, NoReviewDiffs,
    NoWorkspaceCopies, Plugins, ReviewDiffs, Skills, WorkspaceCopies,
};
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
    /// The configuration of MCP servers.
    pub mcp: McpConfig,
    /// The configuration of hooks.
    pub hooks: HookConfig,
    /// The configuration of plugins.
    pub plugins: PluginConfig,
    /// Paths hidden from commands in a sandbox.
    pub hidden_paths: Vec<PathBuf>,
    /// The `PATH` of commands.
    pub path: SearchPath,
    /// The skills that the model may use.
    pub skills: Arc<dyn Skills>,
}

/// The parts of the agent that the server serves.
pub struct AgentParts {
    /// The live threads.
    pub threads: Threads,
    /// The MCP servers whose tools the threads use.
    pub mcp: Arc<dyn McpServers>,
    /// The plugins whose tools the threads use.
    pub plugins: Arc<dyn Plugins>,
    /// The checkpoints of the files that turns change.
    pub checkpoints: Arc<dyn Checkpoints>,
    /// The copies of workspaces in which threads work.
    pub copies: Arc<dyn WorkspaceCopies>,
    /// The diffs that reviews are about.
    pub review_diffs: Arc<dyn ReviewDiffs>,
}

impl From<Threads> for AgentParts {
    fn from(threads: Threads) -> Self {
        Self {
            threads,
            mcp: Arc::new(NoMcpServers),
            plugins: Arc::new(NoPlugins),
            checkpoints: Arc::new(NoCheckpoints),
            copies: Arc::new(NoWorkspaceCopies),
            review_diffs: Arc::new(NoReviewDiffs),
        }
    }
}
