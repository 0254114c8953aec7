//! The services behind the gate. Each has exclusive ownership of its state.

pub(crate) mod accounts;
pub(crate) mod agent_deps;
pub(crate) mod catalogue;
pub(crate) mod checkpoints;
pub(crate) mod config_loader;
pub(crate) mod config_problems;
pub(crate) mod files;
pub(crate) mod mcp_status;
pub(crate) mod model_list_cache;
pub(crate) mod offered_skills;
pub(crate) mod pages;
pub(crate) mod plugin_catalogue;
pub(crate) mod processes;
pub(crate) mod profiles;
pub(crate) mod sandbox_policy;
pub(crate) mod search_sessions;
pub(crate) mod searches;
pub(crate) mod skill_roots;
pub(crate) mod skill_settings;
pub(crate) mod skills;
pub(crate) mod threads;
pub(crate) mod watches;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use raddle_agent::Threads;
use raddle_config::{
    CommandConfig, Config, ConfigError, HookConfig, McpConfig, PluginConfig, Providers, State,
};
use raddle_core::ports::{Checkpoints, McpServers, Plugins, ReviewDiffs, WorkspaceCopies};
use raddle_sandbox::{Launcher, SandboxService, SearchPath};
use tokio::sync::oneshot;

use self::accounts::Accounts;
use self::agent_deps::{AgentDeps, AgentParts};
use self::catalogue::Catalogue;
use self::config_loader::{ConfigLoader, ConfigSnapshot};
use self::model_list_cache::ModelListCache;
use self::offered_skills::OfferedSkills;
use self::searches::Searches;
use self::skill_roots::SkillRoots;
use self::watches::{PathWatcher, SkillWatches};
use crate::disk::{DiskExecutor, DiskPool};
use crate::lanes::Lanes;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::wire_error::WireError;

/// Limit: disk jobs in the home that run at a time, of all connections; beyond it, further jobs
/// wait in order.
const HOME_JOBS_MAX: usize = 16;

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) options: Options,
    pub(crate) lanes: Lanes,
    /// The blocking threads for the disks of clients.
    pub(crate) disks: DiskPool,
    /// The blocking threads for the server's own home.
    pub(crate) home: DiskExecutor,
    pub(crate) config: Arc<Config>,
    config_loader: ConfigLoader,
    /// Pending sign-ins of clients with providers.
    pub(crate) accounts: Accounts,
    /// The models that vendors offer.
    pub(crate) catalogue: Catalogue,
    pub(crate) model_list: ModelListCache,
    pub(crate) searches: Searches,
    pub(crate) skill_roots: SkillRoots,
    pub(crate) watcher: PathWatcher,
    pub(crate) skill_watches: SkillWatches,
    pub(crate) threads: Threads,
    /// The MCP servers whose tools the threads use.
    pub(crate) mcp: Arc<dyn McpServers>,
    /// The plugins whose tools the threads use.
    pub(crate) plugins: Arc<dyn Plugins>,
    /// The checkpoints of the files that turns change.
    pub(crate) checkpoints: Arc<dyn Checkpoints>,
    /// The copies of workspaces in which threads work.
    pub(crate) copies: Arc<dyn WorkspaceCopies>,
    /// The diffs that reviews are about.
    pub(crate) review_diffs: Arc<dyn ReviewDiffs>,
    /// Starts the processes of clients.
    pub(crate) launcher: Launcher,
    /// The sandbox around these processes.
    pub(crate) sandbox: SandboxService,
    /// Number of connections that ended by a panic of the server.
    pub(crate) panicked_connections: AtomicU64,
    pub(crate) metrics: Arc<Metrics>,
}

impl ServerState {
    pub(crate) fn open<F, A>(options: Options, agent: F) -> Result<Self, ConfigError>
    where
        F: FnOnce(AgentDeps) -> A,
        A: Into<AgentParts>,
    {
        let config = Arc::new(Config::open(&options.paths, &options.overrides)?);
        for warning in config.warnings() {
            tracing::warn!("{}", warning.summary);
        }
        make_home(&options.paths.home);
        if let Some(folder) = options.paths.user_config.parent() {
            // If it were missing, an agent in a folder around it could create it, with rules in it.
            make_home(folder);
        }
        let launcher = Launcher::new(options.keeper.clone());
        let sandbox =
            SandboxService::measure(options.measure_sandbox.clone(), options.paths.home.clone());
        let asks_login_shell = options.login_shell && config.state().asks_login_shell();
        let path = match asks_login_shell {
            true => SearchPath::of_login_shell(launcher.clone()),
            false => SearchPath::default(),
        };
        let skill_roots = SkillRoots::new(&options.paths);
        let parts = agent(AgentDeps {
            providers: Providers::of(&config),
            launcher: launcher.clone(),
            sandbox: sandbox.clone(),
            commands: CommandConfig::of(&config),
            mcp: McpConfig::of(&config),
            hooks: HookConfig::of(&config),
            plugins: PluginConfig::of(&config),
            hidden_paths: hidden_paths(&options, &config),
            path,
            skills: Arc::new(OfferedSkills::new(&options, &config, &skill_roots)),
        });
        let AgentParts {
            threads,
            mcp,
            plugins,
            checkpoints,
            copies,
            review_diffs,
        } = parts.into();
        skill_roots.set_plugins(plugins.clone());
        let announcer = threads.clone();
        mcp.subscribe(Box::new(move |name, state| {
            announcer.announce(mcp_status::startup_status(name, state).into());
        }));
        Ok(Self {
            options,
            lanes: Lanes::default(),
            disks: DiskPool::default(),
            home: DiskExecutor::of_home(HOME_JOBS_MAX),
            config,
            config_loader: ConfigLoader::default(),
            accounts: Accounts::default(),
            catalogue: Catalogue::default(),
            model_list: ModelListCache::default(),
            searches: Searches::default(),
            skill_roots,
            watcher: PathWatcher::default(),
            skill_watches: SkillWatches::default(),
            threads,
            mcp,
            plugins,
            checkpoints,
            copies,
            review_diffs,
            launcher,
            sandbox,
            panicked_connections: AtomicU64::new(0),
            metrics: Arc::default(),
        })
    }
}

/// Returns the paths that agents may neither read nor change: the server's own, and files with keys
/// or tokens. Of these only existing ones: a missing path would be created as a folder.
fn hidden_paths(options: &Options, config: &Config) -> Vec<PathBuf> {
    let secrets = files::secret_files(options, config).into_iter();
    let secrets = secrets.filter_map(|it| std::path::absolute(it).ok());
    let mut hidden = options.paths.hidden_paths();
    hidden.extend(secrets.filter(|it| it.is_file()));
    hidden
}

impl ServerState {
    /// Returns the paths hidden from commands in a sandbox.
    pub(crate) fn hidden_paths(&self) -> Vec<PathBuf> {
        hidden_paths(&self.options, &self.config)
    }

    /// Passes the current configuration to `callback`, perhaps on a thread that may block.
    pub(crate) fn read_config<F>(&self, callback: F)
    where
        F: FnOnce(Result<ConfigSnapshot<'_>, WireError>) + Send + 'static,
    {
        self.config_loader.load(&self.config, &self.home, callback);
    }

    /// Returns the configuration in force. `config/read` reports a file that has become unusable.
    pub(crate) async fn config_now(&self) -> Result<Arc<State>, WireError> {
        let (sender, receiver) = oneshot::channel();
        self.read_config(|loaded| drop(sender.send(loaded.map(|snapshot| snapshot.in_force()))));
        receiver.await.unwrap_or(Err(WireError::Dropped))
    }
}

/// Creates the home if it is missing: clients learn its path and may look there at once. Without a
/// home the server still serves all requests that need none.
fn make_home(home: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    let created = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home);
    if let Err(error) = created {
        tracing::warn!(home = %home.display(), %error, "the home cannot be created");
    }
}
