//! Creates the live threads, from the journal of the configured store and the configured models.

mod journal;
mod peers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_agent::{Options, Threads};
use raddle_config::clock::now;
use raddle_config::{CommandConfig, StoreSetting};
use raddle_core::policy::{Amendment, Layer, PathPattern, Policy};
use raddle_core::ports::{AmendError, BoxFuture, Rulebook};
use raddle_core::{Recovery, Settings, ThreadId};
use raddle_plugin::{
    InstalledHooks, McpRegistry, McpTools, NetworkAccess, PluginModels, PluginRegistry,
    PluginTools, ProcessStarter,
};
use raddle_providers::{ConfiguredModels, VendorClient};
use raddle_rpc::Connection;
use raddle_sandbox::{PolicyPath, SandboxService, Tier, egress};
use raddle_server::{AgentDeps, AgentParts, Peers};
use raddle_store::MemoryJournal;
use raddle_tools::{
    BuiltInTools, CheckpointOptions, CheckpointedTools, CopyFolders, FileCheckpoints, HostsError,
    Operator,
};
use tokio::sync::{mpsc, watch};

use self::journal::LazyJournal;
use self::peers::LocalPeers;
use crate::rules::RuleStore;
use crate::webhook::HttpWebhook;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Dependencies of the live threads that the server does not provide.
pub(crate) struct ThreadDeps<'a> {
    pub(crate) home: &'a Path,
    pub(crate) store: StoreSetting,
    pub(crate) rules: RuleStore,
    pub(crate) recovery: Recovery,
    pub(crate) vendor_client: &'a VendorClient,
    /// The other processes of the home.
    pub(crate) peers: Arc<dyn Peers>,
}

/// Creates the live threads. Connections of the other processes of the home go to `peer_connections`.
pub(crate) fn open(
    thread_deps: ThreadDeps<'_>,
    deps: AgentDeps,
    peer_connections: mpsc::Sender<Connection>,
) -> AgentParts {
    let ThreadDeps {
        home,
        store,
        rules,
        recovery,
        vendor_client,
        peers,
    } = thread_deps;
    let command_rules = CommandRules::of(&deps, rules.clone());
    let commands = deps.commands.clone();
    let own = deps.hidden_paths.clone();
    let starter = starter_for(&deps, &command_rules);
    let built_in = tools_for(&deps, command_rules);
    let AgentDeps {
        providers,
        sandbox: sandbox_service,
        mcp,
        hooks,
        plugins,
        skills,
        ..
    } = deps;
    let plugins = PluginRegistry::new(plugins, starter.clone(), home);
    let mcp = McpRegistry::new(mcp, starter.clone(), home, plugins.mcp_servers());
    let hooks = InstalledHooks::new(hooks, starter, plugins.clone());
    let tools = McpTools::new(Arc::new(built_in.clone()), mcp.clone());
    let tools = PluginTools::new(Arc::new(tools), plugins.clone());
    let checkpoints = FileCheckpoints::new(CheckpointOptions {
        folder: checkpoints_folder(home),
        copies: copies_folder(home),
        too_wide: user_homes()
            .into_iter()
            .chain(own)
            .chain([copies_folder(home)])
            .collect(),
        holds: sandbox_service.holds().clone(),
        clock: now,
        is_enabled: Box::new(move || commands.has_checkpoints()),
    });
    let tools = CheckpointedTools::new(Arc::new(tools), built_in.turn_diffs(), checkpoints.clone());
    let models = ConfiguredModels::new(providers.clone(), vendor_client);
    let models = PluginModels::new(Arc::new(models), providers, plugins.clone());
    // Never the name of another process, not even of a dead one.
    let node = ThreadId::mint().to_string();
    let journal = Arc::new(LazyJournal::new(
        folder(home),
        store,
        node.clone(),
        peer_connections,
    ));
    let memory = Arc::new(MemoryJournal::new());
    let threads = Threads::new(Options {
        journal: journal.clone(),
        pages: journal.clone(),
        blobs: journal,
        memory: memory.clone(),
        memory_pages: memory.clone(),
        memory_blobs: memory,
        model: Arc::new(models),
        tools: Arc::new(tools),
        rules: Arc::new(TierLimitedRules {
            rules,
            sandbox: sandbox_service,
        }),
        webhook: Arc::new(HttpWebhook::default()),
        hooks: Arc::new(hooks),
        skills,
        plugins: Arc::new(plugins.clone()),
        clock: now,
        node,
        liveness: peers,
        recovery,
    });
    AgentParts {
        threads,
        mcp: Arc::new(mcp),
        plugins: Arc::new(plugins),
        copies: Arc::new(checkpoints.clone()),
        checkpoints: Arc::new(checkpoints),
        review_diffs: Arc::new(built_in),
    }
}

/// Creates the MCP servers of the configuration alone, with the dependencies of live threads.
pub(crate) fn mcp_servers(home: &Path, deps: &AgentDeps, rules: RuleStore) -> McpRegistry {
    let (_, of_plugins) = watch::channel(Vec::new());
    McpRegistry::new(
        deps.mcp.clone(),
        process_starter(deps, rules),
        home,
        of_plugins,
    )
}

/// Creates the starter of MCP servers, hooks and plugins alone.
pub(crate) fn process_starter(deps: &AgentDeps, rules: RuleStore) -> ProcessStarter {
    starter_for(deps, &CommandRules::of(deps, rules))
}

/// Creates the built-in tools alone.
pub(crate) fn built_in_tools(deps: &AgentDeps, rules: RuleStore) -> BuiltInTools {
    tools_for(deps, CommandRules::of(deps, rules))
}

fn tools_for(deps: &AgentDeps, operator: Arc<CommandRules>) -> BuiltInTools {
    BuiltInTools::new(raddle_tools::Options {
        launcher: deps.launcher.clone(),
        sandbox: deps.sandbox.clone(),
        operator,
        own: deps.hidden_paths.clone(),
        path: deps.path.clone(),
    })
}

/// Creates the starter of MCP servers, hooks and plugins, which are processes in the sandbox.
fn starter_for(deps: &AgentDeps, operator: &Arc<CommandRules>) -> ProcessStarter {
    ProcessStarter {
        launcher: deps.launcher.clone(),
        sandbox: deps.sandbox.clone(),
        operator: operator.clone(),
        own: deps.hidden_paths.clone(),
        path: deps.path.clone(),
    }
}

/// The other processes of a home.
pub(crate) fn local_peers(home: &Path) -> Arc<dyn Peers> {
    let folder = folder(home);
    Arc::new(LocalPeers { folder })
}

/// The folder of a home's threads.
fn folder(home: &Path) -> PathBuf {
    home.join("threads")
}

/// The user's home, by its name and by its real path.
fn user_homes() -> Vec<PathBuf> {
    let named = std::env::home_dir();
    let real = named.as_ref().and_then(|it| it.canonicalize().ok());
    named.into_iter().chain(real).collect()
}

/// The folder of a home's checkpoints.
pub(crate) fn checkpoints_folder(home: &Path) -> PathBuf {
    home.join("checkpoints")
}

/// The folders of a home's copies of workspaces.
pub(crate) fn copy_folders(home: &Path) -> CopyFolders {
    CopyFolders {
        checkpoints: checkpoints_folder(home),
        copies: copies_folder(home),
    }
}

/// The folder of a home's copies of workspaces. It is beside the home, because commands do not see
/// what is in it. No link leads to it, because one could be replaced.
fn copies_folder(home: &Path) -> PathBuf {
    let real = PolicyPath::of(home).map_or_else(|_| home.to_owned(), |it| it.real);
    let mut folder = real.into_os_string();
    folder.push("-copies");
    folder.into()
}

/// The configuration and the rules for commands.
struct CommandRules {
    commands: CommandConfig,
    rules: RuleStore,
}

impl CommandRules {
    fn of(deps: &AgentDeps, rules: RuleStore) -> Arc<Self> {
        let commands = deps.commands.clone();
        Arc::new(Self { commands, rules })
    }
}

impl Operator for CommandRules {
    fn hosts(&self) -> Result<egress::EgressRules, HostsError> {
        let hosts = self.commands.hosts()?;
        let layers = [Layer::Managed, Layer::User];
        let closed = self.rules.policy().closed_hosts(&layers);
        hosts
            .without(closed.iter().map(String::as_str))
            .map_err(HostsError::Rules)
    }

    fn accepts_second(&self) -> bool {
        self.commands.accepts_second()
    }

    fn allows_login_shell(&self) -> bool {
        self.commands.allows_login_shell()
    }

    fn closed_below(&self, folder: &str) -> Vec<PathPattern> {
        self.rules.policy().closed_below(folder)
    }
}

impl raddle_plugin::Operator for CommandRules {
    fn network(&self) -> NetworkAccess {
        if self.rules.policy().managed.network_off {
            return NetworkAccess::None;
        }
        match (Operator::hosts(self), self.commands.lists_hosts()) {
            (Ok(_), false) => NetworkAccess::Open,
            (Ok(hosts), true) => NetworkAccess::Listed(hosts),
            (Err(error), _) => {
                tracing::warn!(%error, "MCP servers have no network");
                NetworkAccess::None
            }
        }
    }

    fn hosts(&self) -> Option<egress::EgressRules> {
        let hosts = Operator::hosts(self);
        let log = |error: &HostsError| tracing::warn!(%error, "hooks have no network");
        hosts.inspect_err(log).ok()
    }

    fn accepts_second(&self) -> bool {
        self.commands.accepts_second()
    }

    fn objection(&self, words: &[String]) -> Option<String> {
        let script = raddle_tools::shell::parse_words(words);
        self.rules.policy().objection_to_configured(&script)
    }

    fn objection_to_settings(&self, settings: &Settings) -> Option<String> {
        self.rules.policy().managed.objection(settings)
    }

    fn workspaces(&self, settings: &Settings) -> Vec<PathBuf> {
        raddle_tools::workspaces(settings)
    }
}

/// The rules, limited by the tier of this machine's sandbox: in tier B commands can write more than
/// they should, so no rule of the user leads out of the sandbox.
struct TierLimitedRules {
    rules: RuleStore,
    sandbox: SandboxService,
}

impl Rulebook for TierLimitedRules {
    fn policy(&self) -> Arc<Policy> {
        let policy = self.rules.policy();
        let is_second = match self.sandbox.measurement() {
            Some(it) => it.sandbox.tier() == Tier::B,
            None => self.sandbox.is_pending(),
        };
        match is_second {
            true => Arc::new(policy.without_escalation()),
            false => policy,
        }
    }

    fn amend(&self, amendment: Amendment) -> BoxFuture<'_, Result<(), AmendError>> {
        self.rules.amend(amendment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_link_leads_to_the_copies() {
        let top = tempfile::TempDir::new().expect("a folder");
        let top = top.path().canonicalize().expect("a path");
        std::fs::create_dir(top.join("real")).expect("a folder");
        std::os::unix::fs::symlink("real", top.join("link")).expect("a link");
        for (home, expected) in [
            ("real/home", "real/home-copies"),
            ("link/home", "real/home-copies"),
            ("link/new/home", "real/new/home-copies"),
            ("link", "real-copies"),
        ] {
            assert_eq!(copies_folder(&top.join(home)), top.join(expected), "{home}");
        }
    }
}
