//! Runs the command of a hook in the sandbox of its thread.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_config::{Hook, SandboxFolders, has_network, policy_of};
use raddle_core::{Sandbox, Settings};
use raddle_sandbox::egress::EgressRules;
use raddle_sandbox::{
    ChildProcess, Confinement, ConfinementError, ExitStatus, Launch, Launcher, Output, Policy,
    ProgramError, ReadScope, SandboxRefusal, SandboxRules, SandboxService, SearchPath, StartError,
    Stdio, environment, named_program, own_path,
};

/// Limit: output of a hook, on each of stdout and stderr; beyond it, the hook counts as failed.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// Wait for files that an approved command holds. Beyond it, the hook may only read the folders
/// around them.
const HELD_WAIT: Duration = Duration::from_secs(5);

/// The shell of hooks.
const SHELL: &str = "/bin/sh";

/// Settings of the operator for hooks. Each method may block on the disk.
pub trait HookOperator: Send + Sync {
    /// Returns the hosts that hooks of threads with network access may reach; `None` if the
    /// settings are invalid.
    fn hosts(&self) -> Option<EgressRules>;

    /// Whether hooks may write folders in a second-tier sandbox, which protects no names there.
    fn accepts_second(&self) -> bool;

    /// Returns the folders of a thread, and all others that its sandboxed commands may write. The
    /// search path of hooks contains none of them.
    fn workspaces(&self, settings: &Settings) -> Vec<PathBuf>;
}

/// Dependencies of hook processes.
pub(super) struct HookDeps {
    pub(super) launcher: Launcher,
    pub(super) sandbox: SandboxService,
    pub(super) operator: Arc<dyn HookOperator>,
    pub(super) own: Vec<PathBuf>,
    pub(super) path: SearchPath,
}

/// Exit status and output of a hook.
#[derive(Debug)]
pub(super) struct HookExit {
    /// `None` if it was killed.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// Whether it printed more than is read.
    pub(super) is_truncated: bool,
}

/// Reason why a hook did not run.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    #[error("the shell {SHELL} cannot be used: {0}")]
    Shell(#[from] ProgramError),
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

impl HookDeps {
    /// Runs a hook with this input. Dropping the future ends the process.
    pub(super) async fn run(
        self: &Arc<Self>,
        hook: &Hook,
        settings: &Settings,
        input: &[u8],
    ) -> Result<HookExit, HookError> {
        let path = self.path.get().await.unwrap_or_else(own_path);
        let (deps, command, settings) = (self.clone(), hook.command.clone(), settings.clone());
        let prepared = move || deps.prepare(&command, &settings, &path);
        let prepared = tokio::task::spawn_blocking(prepared).await;
        let (launch, confinement) = prepared.map_err(|_| HookError::Internal)??;
        let plan = self
            .sandbox
            .plan_within(launch, confinement, HELD_WAIT)
            .await?;
        let wrapped = tokio::task::spawn_blocking(move || plan.wrap()).await;
        // Kept until the process has ended.
        let sandbox = wrapped.map_err(|_| HookError::Internal)??;
        let (process, start) = self.launcher.open(Stdio::Pipes { input: true })?;
        start.confined(&sandbox.confined)?;
        let exit = finished(process, input).await;
        drop(sandbox);
        exit
    }

    /// Returns the launch of a hook and its confinement. It may block on the disk.
    fn prepare(
        &self,
        command: &str,
        settings: &Settings,
        path: &OsStr,
    ) -> Result<(Launch, Confinement), HookError> {
        let shell = named_program(SHELL, path, &self.operator.workspaces(settings))?;
        let launch = Launch {
            program: shell.file.into(),
            args: vec!["-c".into(), command.into()],
            cwd: settings.real(&settings.cwd).into(),
            env: variables(shell.path),
        };
        Ok((launch, self.confinement(settings)))
    }

    /// Returns the sandbox of a hook: that of the thread's commands.
    fn confinement(&self, settings: &Settings) -> Confinement {
        let real = |folder: &str| PathBuf::from(settings.real(folder));
        let folders = SandboxFolders {
            cwd: real(&settings.cwd),
            roots: settings.roots.iter().map(|it| real(it)).collect(),
            own: &self.own,
        };
        let policy = policy_of(&settings.sandbox, folders, real)
            .unwrap_or_else(|| writes_nothing(&settings.sandbox, &self.own, real));
        let network = has_network(&settings.sandbox).then(|| self.operator.hosts());
        Confinement {
            policy,
            network: network.flatten(),
            accepts_second_tier: self.operator.accepts_second(),
        }
    }
}

/// Returns the sandbox of hooks in a thread whose folder is the whole disk. Commands do not run
/// there, but hooks must: the administrator's may reject other calls.
fn writes_nothing(sandbox: &Sandbox, own: &[PathBuf], real: impl Fn(&str) -> PathBuf) -> Policy {
    let mut rules = SandboxRules::workspace_write(Vec::new());
    if let Some(reads) = sandbox.reads() {
        let reads = reads.iter().map(|it| real(it));
        let goes_up = |it: &PathBuf| it.components().any(|part| part == Component::ParentDir);
        let is_folder = |it: &PathBuf| it.parent().is_some() && !goes_up(it);
        rules.read = ReadScope::Listed(reads.filter(is_folder).collect());
    }
    rules.hide_own(own);
    Policy::Confined(rules)
}

/// Returns the environment of a hook: the variables that commands inherit.
fn variables(path: OsString) -> Vec<(OsString, OsString)> {
    let mut variables = environment::of(std::env::vars_os(), &BTreeMap::new());
    variables.retain(|(name, _)| name != "PATH");
    variables.push(("PATH".into(), path));
    variables
}

/// Writes the input of a process, and reads its output to the end.
async fn finished(process: ChildProcess, input: &[u8]) -> Result<HookExit, HookError> {
    let ChildProcess {
        input: stdin,
        stdout,
        stderr,
        control: _control,
        mut exit,
    } = process;
    exit.started().await?;
    if let Some(stdin) = stdin {
        // A hook need not read its input.
        let _ = stdin.write(input.to_vec());
        stdin.close();
    }
    let errors = async {
        match &stderr {
            Some(stderr) => read(stderr).await,
            None => Ok((Vec::new(), false)),
        }
    };
    let (printed, errors, report) = tokio::join!(read(&stdout), errors, exit.ended());
    let ((stdout, is_long), (stderr, is_loud)) = (printed?, errors?);
    Ok(HookExit {
        code: report.status.map(ExitStatus::code),
        stdout,
        stderr,
        is_truncated: is_long || is_loud,
    })
}

/// Reads output to its end, and returns the beginning and whether there was more.
async fn read(output: &Output) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut is_truncated = false;
    let mut buffer = [0; 8 << 10];
    loop {
        let count = output.read(&mut buffer).await?;
        if count == 0 {
            return Ok((bytes, is_truncated));
        }
        let fits = count.min(OUTPUT_BYTES_MAX - bytes.len());
        bytes.extend_from_slice(&buffer[..fits]);
        is_truncated |= fits < count;
    }
}
