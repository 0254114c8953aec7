//! The rules of a sandbox that a thread stores or a client requests.

use std::path::PathBuf;

use raddle_core::Sandbox;
use raddle_sandbox::{Policy, SandboxRules, Scratch};

/// The folders that the rules of a sandbox name. None of them comes from a model.
#[derive(Clone, Debug)]
pub struct SandboxFolders<'a> {
    /// Working directory of the commands.
    pub cwd: PathBuf,
    /// Other folders of the workspace.
    pub roots: Vec<PathBuf>,
    /// The server's own paths (keys, threads, rules). They are hidden from commands; a folder among
    /// them may still be named as workspace.
    pub own: &'a [PathBuf],
}

/// Returns the paths that commands in a sandbox may read and write. `real` returns the path of a
/// folder that the sandbox itself names. Returns none if the workspace would be the whole disk.
pub fn policy_of(
    sandbox: &Sandbox,
    folders: SandboxFolders<'_>,
    real: impl Fn(&str) -> PathBuf,
) -> Option<Policy> {
    let named = sandbox.roots().iter().map(|it| real(it));
    let mut rules = match sandbox {
        Sandbox::FullAccess | Sandbox::External { .. } => return Some(Policy::FullAccess),
        Sandbox::ReadOnly { .. } => SandboxRules::workspace_write(named.collect()),
        Sandbox::WorkspaceWrite {
            without_tmp,
            without_tmpdir,
            ..
        } => {
            let scratch = Scratch {
                tmp: !without_tmp,
                tmpdir: !without_tmpdir,
            };
            let others = folders.roots.into_iter().chain(named);
            SandboxRules::workspace(&folders.cwd, others, scratch)?
        }
    };
    rules.hide_own(folders.own);
    Some(Policy::Confined(rules))
}

/// Whether commands in a sandbox reach the network through the proxy. Without a sandbox there is no
/// proxy.
pub fn has_network(sandbox: &Sandbox) -> bool {
    match sandbox {
        Sandbox::FullAccess | Sandbox::External { .. } => false,
        Sandbox::ReadOnly { network, .. } | Sandbox::WorkspaceWrite { network, .. } => *network,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_the_folders_of_the_sandbox() {
        let write = |without_tmp| Sandbox::WorkspaceWrite {
            roots: vec!["/more".to_owned()],
            network: true,
            without_tmp,
            without_tmpdir: true,
        };
        let read = |roots: &[&str]| Sandbox::ReadOnly {
            roots: roots.iter().map(|it| (*it).to_owned()).collect(),
            network: false,
        };
        let own = [PathBuf::from("/own")];
        let confined = |folders: &[&str], has_tmp: bool| {
            let folders = folders.iter().map(PathBuf::from).collect();
            let mut rules = SandboxRules::workspace_write(folders);
            if has_tmp {
                rules.scratch = vec![raddle_sandbox::scratch_folders().0.clone()];
            }
            rules.hide_own(&own);
            Some(Policy::Confined(rules))
        };
        let full_access = Some(Policy::FullAccess);
        let external = Sandbox::External { network: true };
        let all = &["/w", "/r", "/real/more"];
        for (sandbox, cwd, expected, network) in [
            (Sandbox::FullAccess, "/", full_access.clone(), false),
            (external, "/", full_access, false),
            (read(&[]), "/", confined(&[], false), false),
            (
                read(&["/more"]),
                "/w",
                confined(&["/real/more"], false),
                false,
            ),
            (write(false), "/w", confined(all, true), true),
            (write(true), "/w", confined(all, false), true),
            // The workspace would be the whole disk.
            (write(false), "/", None, true),
        ] {
            let folders = SandboxFolders {
                cwd: cwd.into(),
                roots: vec!["/r".into()],
                own: &own,
            };
            let policy = policy_of(&sandbox, folders, |it| format!("/real{it}").into());
            assert_eq!(policy, expected, "{cwd} with {sandbox:?}");
            assert_eq!(has_network(&sandbox), network, "{sandbox:?}");
        }
    }
}
