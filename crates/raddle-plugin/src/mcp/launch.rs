//! Starts the process of an MCP server in its sandbox.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_config::{McpServer, McpTransport, SandboxFolders, policy_of};
use raddle_core::Settings;
use raddle_model::ModelClient;
use raddle_sandbox::egress::EgressRules;
use raddle_sandbox::{
    ChildProcess, ConfinedProcess, Confinement, ConfinementError, Control, Exit, Input, Launch,
    Launcher, Network, Output, Policy, ProgramError, SandboxRefusal, SandboxService, SearchPath,
    StartError, Stdio, environment, named_program, own_path,
};

use super::tool_name::folder_name;

/// Wait for files that an approved command holds. Beyond it, the server may only read the folders
/// around them.
const HELD_WAIT: Duration = Duration::from_secs(5);

/// Settings of the operator for MCP servers. Each method may block on the disk.
pub trait Operator: Send + Sync {
    /// Returns the network access of servers that the configuration grants one: every host, the
    /// hosts of these rules, or none at all.
    fn network(&self) -> NetworkAccess;

    /// Whether servers may write folders in a second-tier sandbox, which protects no names there.
    fn accepts_second(&self) -> bool;

    /// Returns why the operator's policy forbids a server that runs without a sandbox, if it does.
    fn objection(&self, words: &[String]) -> Option<String>;

    /// Returns why the operator's limits forbid the settings of a thread by now, if they do.
    fn objection_to_settings(&self, settings: &Settings) -> Option<String>;

    /// Returns the folders of a thread, and all others that its sandboxed commands may write. No
    /// program is started from there.
    fn workspaces(&self, settings: &Settings) -> Vec<PathBuf>;
}

/// Network access of MCP servers.
#[derive(Debug)]
pub enum NetworkAccess {
    /// Every host.
    Open,
    /// The hosts that the operator lists, through the proxy.
    Listed(EgressRules),
    /// None at all.
    None,
}

/// Dependencies of the start of a server.
pub(crate) struct LaunchDeps {
    pub(crate) launcher: Launcher,
    pub(crate) sandbox: SandboxService,
    pub(crate) operator: Arc<dyn Operator>,
    /// The server's own folders, hidden from MCP servers.
    pub(crate) own: Vec<PathBuf>,
    pub(crate) path: SearchPath,
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
    #[error("its cache folder {} cannot be created: {error}", path.display())]
    Cache {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("it cannot be sandboxed: {0}; `sandbox = false` runs it without a sandbox")]
    Confinement(#[from] ConfinementError),
    #[error("it cannot be sandboxed: {0}; `sandbox = false` runs it without a sandbox")]
    Refused(#[from] SandboxRefusal),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("the start failed with an internal error; the server's log says more")]
    Internal,
}

/// A running MCP server.
pub(crate) struct ServerProcess {
    pub(crate) input: Input,
    pub(crate) stdout: Output,
    pub(crate) stderr: Option<Output>,
    pub(crate) guard: ProcessGuard,
}

/// The process of an MCP server. Dropping it ends the process. The sandbox, with its claim on the
/// folders that the process may write, is kept until the process has ended.
pub(crate) struct ProcessGuard {
    control: Control,
    /// `None` once the process has ended.
    parts: Option<(Exit, ConfinedProcess)>,
}

impl ProcessGuard {
    /// Waits until the process runs.
    async fn started(&mut self) -> Result<(), StartError> {
        match &mut self.parts {
            Some((exit, _)) => exit.started().await.map(drop),
            None => Ok(()),
        }
    }

    /// Waits until the process has ended.
    pub(crate) async fn ended(&mut self) {
        if let Some((exit, _)) = &mut self.parts {
            exit.ended().await;
            self.parts = None;
        }
    }

    /// Ends the process, without waiting.
    pub(crate) fn end(&self) {
        self.control.end();
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        let Some((mut exit, sandbox)) = self.parts.take() else {
            return;
        };
        self.control.end();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                exit.ended().await;
                drop(sandbox);
            });
        }
    }
}

impl LaunchDeps {
    /// Starts a server for threads with these settings.
    pub(crate) async fn start(
        self: &Arc<Self>,
        server: &Arc<McpServer>,
        settings: &Arc<Settings>,
    ) -> Result<ServerProcess, LaunchError> {
        let path = self.path.get().await.unwrap_or_else(own_path);
        let (deps, server, settings) = (self.clone(), server.clone(), settings.clone());
        let prepared = tokio::task::spawn_blocking(move || deps.prepare(&server, &settings, &path));
        let (launch, confinement) = prepared.await.map_err(|_| LaunchError::Internal)??;
        let plan = self
            .sandbox
            .plan_within(launch, confinement, HELD_WAIT)
            .await?;
        let wrapped = tokio::task::spawn_blocking(move || plan.wrap()).await;
        let sandbox = wrapped.map_err(|_| LaunchError::Internal)??;
        let (process, start) = self.launcher.open(Stdio::Pipes { input: true })?;
        let ChildProcess {
            input,
            stdout,
            stderr,
            control,
            exit,
        } = process;
        start.confined(&sandbox.confined)?;
        let mut guard = ProcessGuard {
            control,
            parts: Some((exit, sandbox)),
        };
        guard.started().await?;
        Ok(ServerProcess {
            input: input.ok_or(LaunchError::Internal)?,
            stdout,
            stderr,
            guard,
        })
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
        if let Some(objection) = self.operator.objection_to_settings(settings) {
            return Err(LaunchError::Limits(objection));
        }
        let cache = self.cache.join(folder_name(&server.name));
        std::fs::create_dir_all(&cache).map_err(|error| LaunchError::Cache {
            path: cache.clone(),
            error,
        })?;
        let workspaces = self.operator.workspaces(settings);
        let program = named_program(command, path, &workspaces);
        let program = program.map_err(|error| LaunchError::Program {
            command: command.clone(),
            error,
        })?;
        let launch = Launch {
            program: program.file.into(),
            args: args.iter().map(OsString::from).collect(),
            cwd: match cwd {
                Some(cwd) => Path::new(settings.real(&settings.cwd)).join(cwd),
                None => PathBuf::from(settings.real(&settings.cwd)),
            },
            env: variables(&server.transport, program.path, &cache),
        };
        let confinement = self.confinement(server, settings, cache)?;
        if confinement.policy == Policy::FullAccess {
            let words: Vec<String> = [command].into_iter().chain(args).cloned().collect();
            if let Some(objection) = self.operator.objection(&words) {
                return Err(LaunchError::Forbidden(objection));
            }
        }
        Ok((launch, confinement))
    }

    /// Returns the sandbox of a server: that of the thread, with a cache folder and the network.
    fn confinement(
        &self,
        server: &McpServer,
        settings: &Settings,
        cache: PathBuf,
    ) -> Result<Confinement, LaunchError> {
        let real = |folder: &str| PathBuf::from(settings.real(folder));
        let folders = SandboxFolders {
            cwd: real(&settings.cwd),
            roots: settings.roots.iter().map(|it| real(it)).collect(),
            own: &self.own,
        };
        let mut policy = match server.sandbox {
            true => policy_of(&settings.sandbox, folders, real).ok_or(LaunchError::WholeDisk)?,
            false => Policy::FullAccess,
        };
        let mut network = None;
        if let Policy::Confined(rules) = &mut policy {
            rules.write.push(cache);
            if server.network {
                match self.operator.network() {
                    NetworkAccess::Open => rules.network = Network::Open,
                    NetworkAccess::Listed(hosts) => network = Some(hosts),
                    NetworkAccess::None => {}
                }
            }
        }
        Ok(Confinement {
            policy,
            network,
            accepts_second_tier: self.operator.accepts_second(),
        })
    }
}

/// Returns the environment of a server: the variables that commands inherit, those that its
/// configuration names or sets, and its cache folder.
fn variables(transport: &McpTransport, path: OsString, cache: &Path) -> Vec<(OsString, OsString)> {
    let mut variables = environment::of(std::env::vars_os(), &BTreeMap::new());
    let mut set = |name: OsString, value: OsString| {
        variables.retain(|(old, _)| *old != name);
        variables.push((name, value));
    };
    set("PATH".into(), path);
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
