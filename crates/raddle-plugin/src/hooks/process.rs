//! Runs the command of a hook in the sandbox of its thread.

use std::ffi::OsStr;
use std::io;

use raddle_config::{Hook, has_network, read_only_policy, thread_policy};
use raddle_core::Settings;
use raddle_sandbox::{Confinement, ExitStatus, Launch, Output, ProgramError, named_program};

use crate::process::{self, ProcessError, ProcessStarter, SandboxedProcess};

/// Limit: output of a hook, on each of stdout and stderr; beyond it, the hook counts as failed.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The shell of hooks.
const SHELL: &str = "/bin/sh";

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
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("its start failed with an internal error; the server's log says more")]
    Internal,
}

/// Runs a hook with this input. Dropping the future ends the process.
pub(super) async fn run(
    starter: &ProcessStarter,
    hook: &Hook,
    settings: &Settings,
    input: &[u8],
) -> Result<HookExit, HookError> {
    let path = starter.search_path().await;
    let (deps, command, settings) = (starter.clone(), hook.command.clone(), settings.clone());
    let prepared = move || prepare(&deps, &command, &settings, &path);
    let prepared = tokio::task::spawn_blocking(prepared).await;
    let (launch, confinement) = prepared.map_err(|_| HookError::Internal)??;
    let process = starter.start(launch, confinement).await?;
    finished(process, input).await
}

/// Returns the launch of a hook and its confinement. It may block on the disk.
fn prepare(
    starter: &ProcessStarter,
    command: &str,
    settings: &Settings,
    path: &OsStr,
) -> Result<(Launch, Confinement), HookError> {
    let shell = named_program(SHELL, path, &starter.operator.workspaces(settings))?;
    let launch = Launch {
        program: shell.file.into(),
        args: vec!["-c".into(), command.into()],
        cwd: settings.real(&settings.cwd).into(),
        env: process::variables(shell.path),
    };
    Ok((launch, confinement(starter, settings)))
}

/// Returns the sandbox of a hook: that of the thread's commands.
fn confinement(starter: &ProcessStarter, settings: &Settings) -> Confinement {
    let own = &starter.own;
    let policy = thread_policy(settings, own);
    // Commands do not run in the whole disk, but hooks must: the administrator's may reject other
    // calls.
    let policy = policy.unwrap_or_else(|| read_only_policy(settings, own));
    let network = has_network(&settings.sandbox).then(|| starter.operator.hosts());
    Confinement {
        policy,
        network: network.flatten(),
        accepts_second_tier: starter.operator.accepts_second(),
    }
}

/// Writes the input of a process, and reads its output to the end.
async fn finished(process: SandboxedProcess, input: &[u8]) -> Result<HookExit, HookError> {
    let SandboxedProcess {
        input: stdin,
        stdout,
        stderr,
        mut guard,
        ..
    } = process;
    // A hook need not read its input.
    let _ = stdin.write(input.to_vec());
    stdin.close();
    let errors = async {
        match &stderr {
            Some(stderr) => read(stderr).await,
            None => Ok((Vec::new(), false)),
        }
    };
    let (printed, errors, report) = tokio::join!(read(&stdout), errors, guard.ended());
    let ((stdout, is_long), (stderr, is_loud)) = (printed?, errors?);
    Ok(HookExit {
        code: report.and_then(|it| it.status).map(ExitStatus::code),
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
