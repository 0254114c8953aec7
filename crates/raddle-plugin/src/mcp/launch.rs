//! Starts the process of an MCP server in its sandbox.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_config::{McpConfig, McpPlugin, McpServer, McpTransport, thread_policy};
use raddle_core::Settings;
use raddle_model::ModelClient;
use raddle_sandbox::{
    Confinement, Launch, Network, Policy, ProgramError, SandboxRules, named_program,
};

use super::tool_name::folder_name;
use crate::process::{self, NetworkAccess, ProcessError, ProcessStarter, SandboxedProcess};

/// Dependencies of the start of a server.
pub(crate) struct LaunchDeps {
    pub(crate) config: McpConfig,
    pub(crate) starter: ProcessStarter,
    /// Calls servers that have a URL.
    pub(crate) client: ModelClient,
    /// Home of the logins.
    pub(crate) home: PathBuf,
    /// Folder in which each server has a cache folder.
    pub(crate) cache: PathBuf,
}

/// Reason why a server's process was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error("the command `{command}` cannot be used: {error}")]
    Program {
        command: String,
        error: ProgramError,
    },
    #[error("it would run without a sandbox, and {0}")]
    Forbidden(String),
    #[error("the settings of the thread are no longer allowed: {0}")]
    Limits(String),
    #[error("the thread's folder is the whole disk; start the thread in a folder")]
    WholeDisk,
    #[error("{} lies in a folder that the agent may write; move it", .0.display())]
    Writable(PathBuf),
    #[error("its cache folder {} cannot be created: {error}", path.display())]
    Cache {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{0}; `sandbox = false` runs it without a sandbox")]
    Sandbox(ProcessError),
    #[error(transparent)]
    Process(ProcessError),
    #[error("the start failed with an internal error; the server's log says more")]
    Internal,
}

impl From<ProcessError> for LaunchError {
    fn from(error: ProcessError) -> Self {
        match error {
            ProcessError::Confinement(_) | ProcessError::Refused(_) => Self::Sandbox(error),
            ProcessError::Start(_) | ProcessError::Io(_) | ProcessError::Internal => {
                Self::Process(error)
            }
        }
    }
}

impl LaunchDeps {
    /// Starts a server for threads with these settings.
    pub(crate) async fn start(
        self: &Arc<Self>,
        server: &Arc<McpServer>,
        settings: &Arc<Settings>,
    ) -> Result<SandboxedProcess, LaunchError> {
        let path = self.starter.search_path().await;
        let (deps, server, settings) = (self.clone(), server.clone(), settings.clone());
        let prepared = tokio::task::spawn_blocking(move || deps.prepare(&server, &settings, &path));
        let (launch, confinement) = prepared.await.map_err(|_| LaunchError::Internal)??;
        Ok(self.starter.start(launch, confinement).await?)
    }

    /// Returns the launch of a server and its confinement. It may block on the disk.
    fn prepare(
        &self,
        server: &McpServer,
        settings: &Settings,
        path: &OsStr,
    ) -> Result<(Launch, Confinement), LaunchError> {
        let McpTransport::Stdio {
            command, args, cwd, ..
        } = &server.transport
        else {
            return Err(LaunchError::Internal);
        };
        let operator = &self.starter.operator;
        if let Some(objection) = operator.objection_to_settings(settings) {
            return Err(LaunchError::Limits(objection));
        }
        if let Some(plugin) = &server.plugin {
            return self.prepare_of_plugin(plugin, &server.transport, settings, path);
        }
        let mut confinement = self.confinement(server, settings)?;
        if confinement.policy == Policy::FullAccess {
            let words: Vec<String> = [command].into_iter().chain(args).cloned().collect();
            if let Some(objection) = operator.objection(&words) {
                return Err(LaunchError::Forbidden(objection));
            }
        }
        let cache = self.cache_folder(server, &confinement.policy)?;
        if let Policy::Confined(rules) = &mut confinement.policy {
            rules.write.push(cache.clone());
        }
        let workspaces = operator.workspaces(settings);
        let program = named_program(command, path, &workspaces);
        let program = program.map_err(|error| LaunchError::Program {
            command: command.clone(),
            error,
        })?;
        let launch = Launch {
            program: program.file.into(),
            args: args.iter().map(OsString::from).collect(),
            cwd: self.working_folder(cwd.as_deref(), settings, &cache),
            env: variables(&server.transport, program.path, &cache),
        };
        Ok((launch, confinement))
    }

    /// Returns the launch of a plugin's server, in the folder of the plugin. Its process gets no more
    /// than that of a plugin: it can write no files, and has no network.
    fn prepare_of_plugin(
        &self,
        plugin: &McpPlugin,
        transport: &McpTransport,
        settings: &Settings,
        path: &OsStr,
    ) -> Result<(Launch, Confinement), LaunchError> {
        let McpTransport::Stdio {
            command, args, env, ..
        } = transport
        else {
            return Err(LaunchError::Internal);
        };
        let ProcessStarter { operator, own, .. } = &self.starter;
        let writable = self.writable_beside(plugin, settings)?;
        // A path is relative to the folder of the plugin.
        let name = match command.contains('/') {
            true => plugin.folder.join(command).to_string_lossy().into_owned(),
            false => command.clone(),
        };
        let program = named_program(&name, path, &writable);
        let program = program.map_err(|error| LaunchError::Program {
            command: command.clone(),
            error,
        })?;
        let mut variables = process::variables(program.path);
        variables.retain(|(name, _)| name.to_str().is_none_or(|it| !env.contains_key(it)));
        variables.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        let launch = Launch {
            program: program.file.into(),
            args: args.iter().map(OsString::from).collect(),
            cwd: plugin.folder.clone(),
            env: variables,
        };
        let mut rules = SandboxRules::read_only();
        rules.hide_own(own);
        let confinement = Confinement {
            policy: Policy::Confined(rules),
            network: None,
            accepts_second_tier: operator.accepts_second(),
        };
        Ok((launch, confinement))
    }

    /// Returns the folders that an agent with these settings may write. Rejects those of which one
    /// contains the folder of a plugin: the agent could change its server. It may block on the disk.
    pub(super) fn writable_beside(
        &self,
        plugin: &McpPlugin,
        settings: &Settings,
    ) -> Result<Vec<PathBuf>, LaunchError> {
        let mut writable = self.starter.operator.workspaces(settings);
        let real = writable
            .iter()
            .filter_map(|it| std::fs::canonicalize(it).ok());
        writable.extend(real.collect::<Vec<_>>());
        match writable.iter().any(|it| plugin.folder.starts_with(it)) {
            true => Err(LaunchError::Writable(plugin.folder.clone())),
            false => Ok(writable),
        }
    }

    /// Returns the cache folder of a server. A server without a sandbox shares none with a
    /// sandboxed one, which could leave programs there.
    fn cache_folder(&self, server: &McpServer, policy: &Policy) -> Result<PathBuf, LaunchError> {
        let kind = match policy {
            Policy::Confined(_) => "sandboxed",
            Policy::FullAccess => "unsandboxed",
        };
        let path = self.cache.join(folder_name(&server.name)).join(kind);
        match std::fs::create_dir_all(&path) {
            Ok(()) => Ok(path),
            Err(error) => Err(LaunchError::Cache { path, error }),
        }
    }

    /// Returns the folder in which a server starts: that of its configuration, else the thread's
    /// folder if the operator trusts it, else its cache folder. Package runners such as `npx` run
    /// programs of the folder in which they start, with the variables of the server.
    fn working_folder(&self, cwd: Option<&Path>, settings: &Settings, cache: &Path) -> PathBuf {
        let workspace = Path::new(settings.real(&settings.cwd));
        match cwd {
            Some(cwd) => workspace.join(cwd),
            None if self.config.is_trusted(Path::new(&settings.cwd)) => workspace.to_owned(),
            None => {
                tracing::info!(
                    folder = settings.cwd,
                    "an MCP server starts in its cache folder, because the thread's folder is not \
                     trusted and the server has no `cwd`"
                );
                cache.to_owned()
            }
        }
    }

    /// Returns the sandbox of a server: that of the thread, with the network.
    fn confinement(
        &self,
        server: &McpServer,
        settings: &Settings,
    ) -> Result<Confinement, LaunchError> {
        let ProcessStarter { operator, own, .. } = &self.starter;
        let mut policy = match server.sandbox {
            true => thread_policy(settings, own).ok_or(LaunchError::WholeDisk)?,
            false => Policy::FullAccess,
        };
        let mut network = None;
        if let Policy::Confined(rules) = &mut policy
            && server.network
        {
            match operator.network() {
                NetworkAccess::Open => rules.network = Network::Open,
                NetworkAccess::Listed(hosts) => network = Some(hosts),
                NetworkAccess::None => {}
            }
        }
        Ok(Confinement {
            policy,
            network,
            accepts_second_tier: operator.accepts_second(),
        })
    }
}

/// Returns the environment of a server: the variables that commands inherit, those that its
/// configuration names or sets, and its cache folder.
fn variables(transport: &McpTransport, path: OsString, cache: &Path) -> Vec<(OsString, OsString)> {
    let mut variables = process::variables(path);
    let mut set = |name: OsString, value: OsString| {
        variables.retain(|(old, _)| *old != name);
        variables.push((name, value));
    };
    // The package runners of servers keep downloads here.
    for (name, folder) in [("XDG_CACHE_HOME", "cache"), ("npm_config_cache", "npm")] {
        set(name.into(), cache.join(folder).into());
    }
    if let McpTransport::Stdio { env, env_vars, .. } = transport {
        for name in env_vars {
            if let Some(value) = std::env::var_os(name) {
                set(name.into(), value);
            }
        }
        for (name, value) in env {
            set(name.into(), value.into());
        }
    }
    variables
}
