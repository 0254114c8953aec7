//! Starts the process of a plugin in its sandbox.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raddle_sandbox::egress::EgressRules;
use raddle_sandbox::{
    Confinement, Launch, Policy, ProgramError, SandboxRules, is_program, named_program,
};

use super::manifest::Manifest;
use super::network;
use crate::process::{self, ProcessError, ProcessStarter, SandboxedProcess};

/// Reason why a plugin's process was not started.
#[derive(Debug, thiserror::Error)]
pub(super) enum PluginStartError {
    #[error("the folder {} cannot be used: {error}", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error(
        "the program `{program}` cannot be used: {error}; install or build it, or correct \
         `entrypoint`"
    )]
    Program {
        program: String,
        error: ProgramError,
    },
    #[error("the program `{0}` is no executable file; build it, or correct `entrypoint`")]
    NotExecutable(String),
    #[error("{0}; `raddle doctor` checks the sandbox")]
    Process(#[from] ProcessError),
    #[error("its start failed with an internal error; the log says more")]
    Internal,
}

/// A plugin that was started.
pub(super) struct LaunchedPlugin {
    pub(super) process: SandboxedProcess,
    /// File of its program.
    pub(super) program: PathBuf,
}

/// Starts a plugin in its folder. The process can read files, but not Raddle's own, and can write
/// none. It reaches the hosts that `network` permits, through a proxy, and no others. Its program
/// is none of a folder that the agent may write.
pub(super) async fn start(
    starter: &ProcessStarter,
    folder: &Path,
    manifest: &Arc<Manifest>,
    network: Vec<String>,
    writable: Vec<PathBuf>,
) -> Result<LaunchedPlugin, PluginStartError> {
    let path = starter.search_path().await;
    let (deps, folder, manifest) = (starter.clone(), folder.to_owned(), manifest.clone());
    let prepared = move || {
        let network = network::rules(&network, &*deps.operator);
        prepare(&deps, &folder, &manifest, &path, network, &writable)
    };
    let prepared = tokio::task::spawn_blocking(prepared).await;
    let (launch, confinement) = prepared.map_err(|_| PluginStartError::Internal)??;
    let program = PathBuf::from(launch.program.clone());
    let process = starter.start(launch, confinement).await?;
    Ok(LaunchedPlugin { process, program })
}

/// Returns the launch of a plugin and its confinement. It may block on the disk.
fn prepare(
    starter: &ProcessStarter,
    folder: &Path,
    manifest: &Manifest,
    path: &OsStr,
    network: Option<EgressRules>,
    writable: &[PathBuf],
) -> Result<(Launch, Confinement), PluginStartError> {
    let real = std::fs::canonicalize(folder);
    let folder = real.map_err(|error| PluginStartError::Folder {
        path: folder.to_owned(),
        error,
    })?;
    let unusable = |program: &str, error| PluginStartError::Program {
        program: program.to_owned(),
        error,
    };
    let (program, args) = manifest
        .entrypoint
        .split_first()
        .ok_or(PluginStartError::Internal)?;
    // A path is relative to the folder of the plugin.
    let name = match program.contains('/') {
        true => folder.join(program).to_string_lossy().into_owned(),
        false => program.clone(),
    };
    let found = named_program(&name, path, writable).map_err(|error| unusable(program, error))?;
    if !is_program(&found.file) {
        return Err(PluginStartError::NotExecutable(program.clone()));
    }
    let launch = Launch {
        program: found.file.into(),
        args: args.iter().map(OsString::from).collect(),
        cwd: folder,
        env: process::variables(found.path),
    };
    let mut rules = SandboxRules::read_only();
    rules.hide_own(&starter.own);
    let confinement = Confinement {
        policy: Policy::Confined(rules),
        network,
        accepts_second_tier: starter.operator.accepts_second(),
    };
    Ok((launch, confinement))
}
