//! The sandbox policy that a thread's settings ask for.

use std::io;
use std::path::{Path, PathBuf};

use raddle_config::{has_network, thread_policy};
use raddle_core::Settings;
use raddle_sandbox::{Confinement, Policy};

use crate::tool_call_error::ToolCallError;
use crate::tool_deps::Operator;

/// Returns the confinement of a command in a thread with these settings.
pub(super) fn confinement_of(
    settings: &Settings,
    own: &[PathBuf],
    operator: &dyn Operator,
) -> Result<Confinement, ToolCallError> {
    let policy = policy(settings, own)?;
    let network = has_network(&settings.sandbox).then(|| operator.hosts());
    Ok(Confinement {
        policy,
        network: network.transpose().map_err(ToolCallError::new)?,
        accepts_second_tier: operator.accepts_second(),
    })
}

/// Rejects a thread's folder that resolves elsewhere since its client named it. It may block on the
/// disk.
pub(super) fn check_folder(settings: &Settings) -> Result<(), ToolCallError> {
    let cwd = Path::new(&settings.cwd);
    match std::fs::canonicalize(cwd) {
        Ok(real) if real != Path::new(settings.real(&settings.cwd)) => {
            Err(ToolCallError::new(format!(
                "{} leads to {} now, and led elsewhere when the user chose it, so nothing is run there. Ask the user to \
                 remove the link, or to name the folder of the thread again.",
                cwd.display(),
                real.display()
            )))
        }
        // A missing folder is reported by `check_start_folder`.
        _ => Ok(()),
    }
}

/// Rejects a start folder that does not exist. The sandbox or the start of the program would report
/// it without a remedy. It may block on the disk.
pub(super) fn check_start_folder(settings: &Settings, cwd: &Path) -> Result<(), ToolCallError> {
    let problem = match std::fs::metadata(cwd) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => "is not a folder",
        Err(error) if error.kind() == io::ErrorKind::NotFound => "does not exist",
        // The start of the command reports other errors.
        Err(_) => return Ok(()),
    };
    let advice = match Path::new(&settings.cwd) == cwd {
        true => {
            "It is the folder of the thread: ask the user to create it, or to name another folder."
        }
        false => "Name another workdir.",
    };
    let path = cwd.display();
    Err(ToolCallError::new(format!("{path} {problem}. {advice}")))
}

/// Returns the paths that tools may read and write in a thread with these settings. Nothing of it
/// comes from a call.
///
/// `own`: the server's own folders.
pub(crate) fn policy(settings: &Settings, own: &[PathBuf]) -> Result<Policy, ToolCallError> {
    thread_policy(settings, own).ok_or_else(|| {
        ToolCallError::new(
            "The workspace would be the whole disk. Ask the user to start the thread in a folder.",
        )
    })
}

/// Returns the folders of a thread, and all others that its sandboxed commands may write. No
/// program that the server starts by itself may come from there.
pub fn workspaces(settings: &Settings) -> Vec<PathBuf> {
    let writable = match policy(settings, &[]) {
        Ok(Policy::Confined(rules)) => [rules.write, rules.scratch].concat(),
        Ok(Policy::FullAccess) | Err(_) => Vec::new(),
    };
    // A thread that only looks around in the user's home does not make a workspace of it.
    let home = std::env::home_dir();
    let is_wide = |it: &PathBuf| home.as_ref().is_some_and(|home| home.starts_with(it));
    let named = std::iter::once(&settings.cwd).chain(&settings.roots);
    let named = named.map(PathBuf::from).filter(|it| !is_wide(it));
    let all = named.chain(writable);
    all.filter(|it| it.is_absolute() && it != Path::new("/"))
        .collect()
}

/// Rejects a start folder that is hidden from the command: the command would find it empty without
/// a reason.
pub(super) fn check_visible(confinement: &Confinement, cwd: &Path) -> Result<(), ToolCallError> {
    let is_hidden = match &confinement.policy {
        Policy::FullAccess => false,
        Policy::Confined(rules) => rules.hidden.iter().any(|own| {
            let is_open = |it: &PathBuf| it.starts_with(own) && cwd.starts_with(it);
            cwd.starts_with(own) && !rules.write.iter().any(is_open)
        }),
    };
    match is_hidden {
        true => Err(ToolCallError::new(format!(
            "{} belongs to the server itself, and commands in the sandbox do not see it. Name another workdir, or ask \
             the user to start the thread in another folder.",
            cwd.display()
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::Sandbox;

    use super::*;

    #[test]
    fn programs_never_come_from_writable_folders() {
        let home = std::env::home_dir().expect("a home");
        let home = home.to_str().expect("text");
        let read = Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
            reads: None,
        };
        let write = Sandbox::WorkspaceWrite {
            roots: vec!["/more".to_owned()],
            network: false,
            without_tmp: false,
            without_tmpdir: true,
            reads: None,
        };
        for (sandbox, cwd, expected) in [
            (&read, "/w", &["/w", "/r"][..]),
            (&read, home, &["/r"]),
            (&read, "/", &["/r"]),
            (&write, "/w", &["/w", "/r", "/w", "/r", "/more", "/tmp"]),
            (&write, home, &["/r", home, "/r", "/more", "/tmp"]),
            (&Sandbox::FullAccess, "/w", &["/w", "/r"]),
        ] {
            let settings = Settings {
                cwd: cwd.to_owned(),
                roots: vec!["/r".to_owned()],
                sandbox: sandbox.clone(),
                ..Settings::default()
            };
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(workspaces(&settings), expected, "{cwd} with {sandbox:?}");
        }
    }

    #[test]
    fn server_folders_are_hidden_unless_they_are_the_workspace() {
        let own = [PathBuf::from("/home/ann/.raddle")];
        let read = Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
            reads: None,
        };
        let write = Sandbox::WorkspaceWrite {
            roots: Vec::new(),
            network: false,
            without_tmp: false,
            without_tmpdir: false,
            reads: None,
        };
        for (sandbox, cwd, expected) in [
            (&read, "/home/ann/.raddle/skills", false),
            (&read, "/home/ann", true),
            (&write, "/home/ann/.raddle/skills", true),
            (&Sandbox::FullAccess, "/home/ann/.raddle", true),
        ] {
            let settings = Settings {
                cwd: cwd.to_owned(),
                sandbox: sandbox.clone(),
                ..Settings::default()
            };
            let confinement = Confinement {
                policy: policy(&settings, &own).expect("a policy"),
                network: None,
                accepts_second_tier: false,
            };
            let is_visible = check_visible(&confinement, Path::new(cwd)).is_ok();
            assert_eq!(is_visible, expected, "{cwd} with {sandbox:?}");
        }
    }
}
