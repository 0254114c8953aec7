//! The rooms behind the gate. Each holds one thing and is its only keeper.

pub(crate) mod accounts;
pub(crate) mod agent_deps;
pub(crate) mod catalogue;
pub(crate) mod config;
pub(crate) mod files;
pub(crate) mod models;
pub(crate) mod pages;
pub(crate) mod permissions;
pub(crate) mod processes;
pub(crate) mod providers;
pub(crate) mod searches;
pub(crate) mod skills;
pub(crate) mod threads;
pub(crate) mod vendors;
pub(crate) mod watches;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use raddle_agent::Threads;
use raddle_sandbox::{Launcher, SandboxService, SearchPath};
use tokio::sync::oneshot;

use self::accounts::Accounts;
use self::agent_deps::{AgentDeps, CommandConfig};
use self::catalogue::Catalogue;
use self::config::{Config, ConfigError, ConfigLoader, ConfigSnapshot, State};
use self::providers::Providers;
use self::searches::Searches;
use self::watches::PathWatcher;
use crate::disk::{DiskExecutor, DiskPool};
use crate::lanes::Lanes;
use crate::metrics::Metrics;
use crate::server::Options;
use crate::wire_error::WireError;

/// How many jobs may read the server's own home at once.
const HOME_JOBS_MAX: usize = 16;

/// Everything the connections share.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) options: Options,
    pub(crate) lanes: Lanes,
    /// The threads for what is on the disks of clients.
    pub(crate) disks: DiskPool,
    /// The threads for what is in the server's own home.
    pub(crate) home: DiskExecutor,
    pub(crate) config: Arc<Config>,
    config_loader: ConfigLoader,
    /// Sign-ins that are under way.
    pub(crate) accounts: Accounts,
    /// What vendors say they have.
    pub(crate) catalogue: Catalogue,
    pub(crate) searches: Searches,
    pub(crate) watcher: PathWatcher,
    pub(crate) threads: Threads,
    /// Starts what clients run.
    pub(crate) launcher: Launcher,
    /// The fence around it.
    pub(crate) sandbox: SandboxService,
    /// How many connections ended by a fault of ours.
    pub(crate) panicked_connections: AtomicU64,
    pub(crate) metrics: Arc<Metrics>,
}

impl ServerState {
    pub(crate) fn open<F>(options: Options, threads: F) -> Result<Self, ConfigError>
    where
        F: FnOnce(AgentDeps) -> Threads,
    {
        let config = Arc::new(Config::open(&options.paths, &options.overrides)?);
        for warning in config.warnings() {
            tracing::warn!("{}", warning.summary);
        }
        make_home(&options.paths.home);
        if let Some(folder) = options.paths.user_config.parent() {
            // If it were missing, an agent that works around it could make it, and rules in it.
            make_home(folder);
        }
        let engine = Launcher::new(options.keeper.clone());
        let fences =
            SandboxService::measure(options.measure_sandbox.clone(), options.paths.home.clone());
        let asks_login = options.login_shell && config.state().asks_login_shell();
        let path = match asks_login {
            true => SearchPath::of_login_shell(engine.clone()),
            false => SearchPath::default(),
        };
        let threads = threads(AgentDeps {
            providers: Providers::of(&config),
            launcher: engine.clone(),
            sandbox: fences.clone(),
            commands: CommandConfig::of(&config),
            hidden_paths: hidden_paths(&options, &config),
            path,
        });
        Ok(Self {
            options,
            lanes: Lanes::default(),
            disks: DiskPool::default(),
            home: DiskExecutor::of_home(HOME_JOBS_MAX),
            config,
            config_loader: ConfigLoader::default(),
            accounts: Accounts::default(),
            catalogue: Catalogue::default(),
            searches: Searches::default(),
            watcher: PathWatcher::default(),
            threads,
            launcher: engine,
            sandbox: fences,
            panicked_connections: AtomicU64::new(0),
            metrics: Arc::default(),
        })
    }
}

/// What agents neither see nor change: the server's own, and files with keys or tokens. Of these only what is there,
/// because a folder would be made in the place of what is missing.
fn hidden_paths(options: &Options, config: &Config) -> Vec<PathBuf> {
    let secrets = files::secret_files(options, config).into_iter();
    let secrets = secrets.filter_map(|it| std::path::absolute(it).ok());
    let mut own = options.paths.hidden_paths();
    own.extend(secrets.filter(|it| it.is_file()));
    own
}

impl ServerState {
    /// What commands in a sandbox do not see.
    pub(crate) fn hidden_paths(&self) -> Vec<PathBuf> {
        hidden_paths(&self.options, &self.config)
    }

    /// Hands the configuration as it is now to `asker`, perhaps on a thread that may wait.
    pub(crate) fn read_config<F>(&self, asker: F)
    where
        F: FnOnce(Result<ConfigSnapshot<'_>, WireError>) + Send + 'static,
    {
        self.config_loader.ask(&self.config, &self.home, asker);
    }

    /// The configuration in force now. A file that has become unusable is told by `config/read`.
    pub(crate) async fn config_now(&self) -> Result<Arc<State>, WireError> {
        let (tell, told) = oneshot::channel();
        self.read_config(|looked| drop(tell.send(looked.map(|looked| looked.in_force()))));
        told.await.unwrap_or(Err(WireError::Dropped))
    }
}

/// Clients are told of the home and may look there at once, so it is made when it is missing. Without
/// one the server still serves what needs none.
fn make_home(home: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home);
    if let Err(error) = made {
        tracing::warn!(home = %home.display(), %error, "the home cannot be made");
    }
}
