//! The fence that a thread's settings ask for.

use std::path::{Path, PathBuf};

use raddle_core::{Sandbox, Settings};
use raddle_sandbox::{Confinement, Policy, SandboxRules, Scratch};

use crate::registry::Operator;

/// What holds a command in a thread with these settings.
pub(super) fn confinement_of(
    settings: &Settings,
    own: &[PathBuf],
    operator: &dyn Operator,
) -> Result<Confinement, String> {
    let has_network = match settings.sandbox {
        Sandbox::FullAccess | Sandbox::External { .. } => false,
        Sandbox::ReadOnly { network, .. } | Sandbox::WorkspaceWrite { network, .. } => network,
    };
    Ok(Confinement {
        policy: policy(settings, own)?,
        network: has_network.then(|| operator.hosts()).transpose()?,
        accepts_second: operator.accepts_second(),
    })
}

/// Refuses a thread's folder that has led elsewhere since its client named it. It may wait for a disk.
pub(super) fn check_folder(settings: &Settings) -> Result<(), String> {
    let cwd = Path::new(&settings.cwd);
    match std::fs::canonicalize(cwd) {
        Ok(real) if real != Path::new(settings.real(&settings.cwd)) => Err(format!(
            "{} leads to {} now, and led elsewhere when the user chose it, so nothing is run there. Ask the user to \
             remove the link, or to name the folder of the thread again.",
            cwd.display(),
            real.display()
        )),
        // The start of the command reports a missing folder.
        _ => Ok(()),
    }
}

/// What tools may touch in a thread with these settings. Nothing of it comes from a call.
///
/// `own`: what is the server's own.
pub(crate) fn policy(settings: &Settings, own: &[PathBuf]) -> Result<Policy, String> {
    let real = |folder: &String| PathBuf::from(settings.real(folder));
    let mut rules = match &settings.sandbox {
        Sandbox::FullAccess | Sandbox::External { .. } => return Ok(Policy::FullAccess),
        Sandbox::ReadOnly { roots, .. } => {
            SandboxRules::workspace_write(roots.iter().map(real).collect())
        }
        Sandbox::WorkspaceWrite {
            roots,
            without_tmp,
            without_tmpdir,
            ..
        } => {
            let beside = settings.roots.iter().chain(roots).map(real);
            let scratch = Scratch {
                tmp: !without_tmp,
                tmpdir: !without_tmpdir,
            };
            SandboxRules::workspace(&real(&settings.cwd), beside, scratch).ok_or(
                "The workspace would be the whole disk. Ask the user to start the thread in a folder.",
            )?
        }
    };
    // What is the server's own (keys, threads, rules) is nobody else's; a folder in it may be worked on by name.
    rules.hide_own(own);
    Ok(Policy::Confined(rules))
}

/// The folders of a thread, and whatever else its sandboxed commands may write. No program that the server starts by
/// itself may come from there.
pub fn workspaces(settings: &Settings) -> Vec<PathBuf> {
    let written = match policy(settings, &[]) {
        Ok(Policy::Confined(rules)) => [rules.write, rules.scratch].concat(),
        Ok(Policy::FullAccess) | Err(_) => Vec::new(),
    };
    // To look around in the user's folder makes no workspace of it.
    let home = std::env::home_dir();
    let is_wide = |it: &PathBuf| home.as_ref().is_some_and(|home| home.starts_with(it));
    let named = std::iter::once(&settings.cwd).chain(&settings.roots);
    let named = named.map(PathBuf::from).filter(|it| !is_wide(it));
    let all = named.chain(written);
    all.filter(|it| it.is_absolute() && it != Path::new("/"))
        .collect()
}

/// Whether a command sees the folder it starts in: in one that is hidden it would find nothing, and not know why.
pub(super) fn check_visible(held: &Confinement, cwd: &Path) -> Result<(), String> {
    let is_hidden = match &held.policy {
        Policy::FullAccess => false,
        Policy::Confined(rules) => rules.hidden.iter().any(|own| {
            let is_open = |it: &PathBuf| it.starts_with(own) && cwd.starts_with(it);
            cwd.starts_with(own) && !rules.write.iter().any(is_open)
        }),
    };
    match is_hidden {
        true => Err(format!(
            "{} belongs to the server itself, and commands in the sandbox do not see it. Name another workdir, or ask \
             the user to start the thread in another folder.",
            cwd.display()
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_may_write_is_no_place_for_programs() {
        let home = std::env::home_dir().expect("a home");
        let home = home.to_str().expect("text");
        let read = Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
        };
        let write = Sandbox::WorkspaceWrite {
            roots: vec!["/more".to_owned()],
            network: false,
            without_tmp: false,
            without_tmpdir: true,
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
    fn a_folder_of_the_server_is_seen_only_where_it_is_worked_on() {
        let own = [PathBuf::from("/home/ann/.raddle")];
        let read = Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
        };
        let write = Sandbox::WorkspaceWrite {
            roots: Vec::new(),
            network: false,
            without_tmp: false,
            without_tmpdir: false,
        };
        for (sandbox, cwd, wanted) in [
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
            let held = Confinement {
                policy: policy(&settings, &own).expect("a policy"),
                network: None,
                accepts_second: false,
            };
            let sees = check_visible(&held, Path::new(cwd)).is_ok();
            assert_eq!(sees, wanted, "{cwd} with {sandbox:?}");
        }
    }
}
