//! The fence that a thread's settings ask for.

use std::path::{Path, PathBuf};

use raddle_core::{Sandbox, Settings};
use raddle_sandbox::{Held, Policy, Rules};

use crate::registry::Operator;

/// What holds a command in a thread with these settings.
pub(super) fn held(
    settings: &Settings,
    own: &[PathBuf],
    operator: &dyn Operator,
) -> Result<Held, String> {
    let has_network = match settings.sandbox {
        Sandbox::FullAccess | Sandbox::External { .. } => false,
        Sandbox::ReadOnly { network } | Sandbox::WorkspaceWrite { network, .. } => network,
    };
    Ok(Held {
        policy: policy(settings, own)?,
        network: has_network.then(|| operator.hosts()).transpose()?,
        accepts_second: operator.accepts_second(),
    })
}

/// What tools may touch in a thread with these settings. Nothing of it comes from a call.
///
/// `own`: what is the server's own.
pub(crate) fn policy(settings: &Settings, own: &[PathBuf]) -> Result<Policy, String> {
    let mut rules = match &settings.sandbox {
        Sandbox::FullAccess | Sandbox::External { .. } => return Ok(Policy::FullAccess),
        Sandbox::ReadOnly { .. } => Rules::read_only(),
        Sandbox::WorkspaceWrite { .. } => workspace(settings)?,
    };
    // What is the server's own (keys, threads) is nobody else's, unless it is worked on by name.
    let is_named = |own: &&PathBuf| rules.write.iter().any(|path| path.starts_with(own));
    rules.hidden = own.iter().filter(|own| !is_named(own)).cloned().collect();
    Ok(Policy::Fenced(rules))
}

fn workspace(settings: &Settings) -> Result<Rules, String> {
    let Sandbox::WorkspaceWrite {
        roots,
        without_tmp,
        without_tmpdir,
        ..
    } = &settings.sandbox
    else {
        return Ok(Rules::read_only());
    };
    if Path::new(&settings.cwd) == Path::new("/") {
        return Err(
            "The workspace would be the whole disk. Ask the user to start the thread in a folder."
                .to_owned(),
        );
    }
    let folders = [&settings.cwd]
        .into_iter()
        .chain(&settings.roots)
        .chain(roots);
    let mut rules = Rules::workspace_write(folders.map(PathBuf::from).collect());
    if !without_tmp {
        rules.scratch.push("/tmp".into());
    }
    if !without_tmpdir
        && let Some(folder) = std::env::var_os("TMPDIR").map(PathBuf::from)
        && folder.is_absolute()
    {
        rules.scratch.push(folder);
    }
    Ok(rules)
}
