//! Starts processes of MCP servers and hooks in their sandbox.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::Settings;
use raddle_sandbox::egress::EgressRules;
use raddle_sandbox::{
    ChildProcess, ConfinedProcess, Confinement, ConfinementError, Control, Exit, ExitReport, Input,
    Launch, Launcher, Output, SandboxRefusal, SandboxService, SearchPath, StartError, Stdio,
    environment, own_path,
};

/// Wait for files that an approved command holds. Beyond it, the process may only read the folders
/// around them.
pub(crate) const HELD_WAIT: Duration = Duration::from_secs(5);

/// Settings of the operator for MCP servers and hooks. Each method may block on the disk.
pub trait Operator: Send + Sync {
    /// Returns the network access of MCP servers that the configuration grants one.
    fn network(&self) -> NetworkAccess;

    /// Returns the hosts that processes of threads with network access may reach; `None` if the
    /// settings are invalid.
    fn hosts(&self) -> Option<EgressRules>;

    /// Whether processes may write folders in a second-tier sandbox, which protects no names
    /// there.
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

/// Dependencies of MCP servers and hooks.
#[derive(Clone)]
pub struct ProcessStarter {
    /// Starts the processes.
    pub launcher: Launcher,
    /// Builds the sandbox of each process.
    pub sandbox: SandboxService,
    /// Settings of the operator that the processes follow.
    pub operator: Arc<dyn Operator>,
    /// The server's own folders, hidden from the processes.
    pub own: Vec<PathBuf>,
    /// Search path of programs.
    pub path: SearchPath,
}

/// Reason why a process was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("it cannot be sandboxed: {0}")]
    Confinement(#[from] ConfinementError),
    #[error("it cannot be sandboxed: {0}")]
    Refused(#[from] SandboxRefusal),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("its start failed with an internal error; the server's log says more")]
    Internal,
}

impl ProcessStarter {
    /// Returns the search path of programs.
    pub(crate) async fn search_path(&self) -> OsString {
        self.path.get().await.unwrap_or_else(own_path)
    }

    /// Starts a process in its sandbox.
    pub(crate) async fn start(
        &self,
        launch: Launch,
        confinement: Confinement,
    ) -> Result<SandboxedProcess, ProcessError> {
        let began = Instant::now();
        let plan = self.sandbox.plan_within(launch, confinement, HELD_WAIT);
        let plan = plan.await?;
        let held_wait = began.elapsed().min(HELD_WAIT);
        let wrapped = tokio::task::spawn_blocking(move || plan.wrap()).await;
        let sandbox = wrapped.map_err(|_| ProcessError::Internal)??;
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
        Ok(SandboxedProcess {
            input: input.ok_or(ProcessError::Internal)?,
            stdout,
            stderr,
            guard,
            held_wait,
        })
    }
}

/// Returns the environment of a process: the variables that commands inherit, with this search
/// path.
pub(crate) fn variables(path: OsString) -> Vec<(OsString, OsString)> {
    let mut variables = environment::of(std::env::vars_os(), &BTreeMap::new());
    variables.retain(|(name, _)| name != "PATH");
    variables.push(("PATH".into(), path));
    variables
}

/// A running process.
pub(crate) struct SandboxedProcess {
    pub(crate) input: Input,
    pub(crate) stdout: Output,
    pub(crate) stderr: Option<Output>,
    pub(crate) guard: ProcessGuard,
    /// Time in which its sandbox was planned, most of it the wait for held files.
    pub(crate) held_wait: Duration,
}

/// Owner of a process. Dropping it ends the process. The sandbox, with its claim on the folders
/// that the process may write, is kept until the process has ended.
pub(crate) struct ProcessGuard {
    control: Control,
    /// `None` once the process has ended.
    parts: Option<(Exit, ConfinedProcess)>,
}

/// Reason why a process is no longer used.
pub(crate) enum Interruption {
    /// It has ended.
    Ended,
    /// Its sandbox no longer fits the files that approved commands hold.
    Outdated,
}

impl ProcessGuard {
    /// Waits until the process runs.
    async fn started(&mut self) -> Result<(), StartError> {
        match &mut self.parts {
            Some((exit, _)) => exit.started().await.map(drop),
            None => Ok(()),
        }
    }

    /// Waits until the process has ended; `None` if that was reported before.
    pub(crate) async fn ended(&mut self) -> Option<ExitReport> {
        let (exit, _) = self.parts.as_mut()?;
        let report = exit.ended().await;
        self.parts = None;
        Some(report)
    }

    /// Waits until the process should be started again, because its sandbox no longer fits the
    /// files that approved commands hold.
    pub(crate) async fn outdated(&self) {
        match &self.parts {
            Some((_, sandbox)) => sandbox.outdated().await,
            None => std::future::pending().await,
        }
    }

    /// Whether its sandbox fits the files that approved commands hold.
    pub(crate) async fn fits(&self) -> bool {
        match &self.parts {
            Some((_, sandbox)) => sandbox.fits().await,
            None => true,
        }
    }

    /// Waits until the process has ended, or should be started again.
    pub(crate) async fn interrupted(&mut self) -> Interruption {
        let Some((exit, sandbox)) = &mut self.parts else {
            return Interruption::Ended;
        };
        tokio::select! {
            _ = exit.ended() => {}
            () = sandbox.outdated() => return Interruption::Outdated,
        }
        self.parts = None;
        Interruption::Ended
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
