//! The rules of a sandbox that a thread stores or a client requests.

use std::path::{Component, Path, PathBuf};

use raddle_core::{Sandbox, Settings};
use raddle_sandbox::{Policy, ReadScope, SandboxRules, Scratch};

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
/// folder that the sandbox itself names. Returns none if the workspace would be the whole disk, or
/// if reads are limited to a list that contains the whole disk.
pub fn policy_of(
    sandbox: &Sandbox,
    folders: SandboxFolders<'_>,
    real: impl Fn(&str) -> PathBuf,
) -> Option<Policy> {
    let named = sandbox.roots().iter().map(|it| real(it));
    let listed: Option<Vec<PathBuf>> = sandbox.reads().map(|reads| {
        let workspace = std::iter::once(&folders.cwd).chain(&folders.roots);
        let reads = reads.iter().map(|it| real(it));
        workspace.cloned().chain(reads).collect()
    });
    if listed.iter().flatten().any(|it| is_whole_disk(it)) {
        return None;
    }
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
    if let Some(mut listed) = listed {
        // A path in a writable folder can be read anyway, and must not become read-only by this.
        listed.retain(|it| !rules.write.iter().any(|root| it.starts_with(root)));
        rules.read = ReadScope::Listed(listed);
    }
    rules.hide_own(folders.own);
    Some(Policy::Confined(rules))
}

/// Returns the paths that programs may read and write in the sandbox of a thread, as
/// [`policy_of`] does. `own`: the server's own paths.
pub fn thread_policy(settings: &Settings, own: &[PathBuf]) -> Option<Policy> {
    let real = |folder: &str| PathBuf::from(settings.real(folder));
    let folders = SandboxFolders {
        cwd: real(&settings.cwd),
        roots: settings.roots.iter().map(|it| real(it)).collect(),
        own,
    };
    policy_of(&settings.sandbox, folders, real)
}

/// Returns the paths that programs may read in the sandbox of a thread that has no
/// [`thread_policy`]. They may write none. `own`: the server's own paths.
pub fn read_only_policy(settings: &Settings, own: &[PathBuf]) -> Policy {
    let mut rules = SandboxRules::workspace_write(Vec::new());
    if let Some(reads) = settings.sandbox.reads() {
        let reads = reads.iter().map(|it| PathBuf::from(settings.real(it)));
        let folders = reads.filter(|it| !is_whole_disk(it));
        rules.read = ReadScope::Listed(folders.collect());
    }
    rules.hide_own(own);
    Policy::Confined(rules)
}

/// Whether a path may be the whole disk.
fn is_whole_disk(path: &Path) -> bool {
    let goes_up = path.components().any(|it| it == Component::ParentDir);
    goes_up || path.parent().is_none()
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
            reads: None,
        };
        let read = |roots: &[&str]| Sandbox::ReadOnly {
            roots: roots.iter().map(|it| (*it).to_owned()).collect(),
            network: false,
            reads: None,
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

    #[test]
    fn a_limit_on_reads_lists_the_workspace() {
        let texts = |paths: &[&str]| -> Vec<String> {
            let paths = paths.iter();
            paths.map(|it| (*it).to_owned()).collect()
        };
        let read = |roots: &[&str], reads: &[&str]| Sandbox::ReadOnly {
            roots: texts(roots),
            network: false,
            reads: Some(texts(reads)),
        };
        let write = |reads: &[&str]| Sandbox::WorkspaceWrite {
            roots: Vec::new(),
            network: false,
            without_tmp: true,
            without_tmpdir: true,
            reads: Some(texts(reads)),
        };
        for (sandbox, cwd, expected) in [
            (read(&[], &[]), "/w", Some(&["/w", "/r"][..])),
            (read(&[], &["/x"]), "/w", Some(&["/w", "/r", "/real/x"])),
            // The user granted a folder around the workspace.
            (read(&["/a"], &[]), "/real/a/w", Some(&["/r"])),
            // The workspace can be written, so it can be read.
            (write(&["/x"]), "/w", Some(&["/real/x"])),
            (write(&[]), "/w", Some(&[])),
            // A list with the whole disk would deny nothing.
            (read(&[], &[]), "/", None),
            (read(&[], &[]), "", None),
            (read(&[], &["/../.."]), "/w", None),
            (write(&["/x/../.."]), "/w", None),
        ] {
            let folders = SandboxFolders {
                cwd: cwd.into(),
                roots: vec!["/r".into()],
                own: &[],
            };
            let policy = policy_of(&sandbox, folders, |it| format!("/real{it}").into());
            let listed = policy.map(|it| match it {
                Policy::Confined(rules) => rules.read,
                Policy::FullAccess => ReadScope::All,
            });
            let expected = expected.map(|it| it.iter().map(PathBuf::from).collect());
            let expected = expected.map(ReadScope::Listed);
            assert_eq!(listed, expected, "{cwd} with {sandbox:?}");
        }
    }

    #[test]
    fn the_whole_disk_is_no_workspace_but_can_be_read_by_list() {
        let reads = ["/x", "/", "/x/../.."].map(str::to_owned);
        let settings = Settings {
            cwd: "/".to_owned(),
            sandbox: Sandbox::ReadOnly {
                roots: Vec::new(),
                network: false,
                reads: Some(reads.to_vec()),
            },
            ..Settings::default()
        };
        assert_eq!(thread_policy(&settings, &[]), None);
        let mut rules = SandboxRules::workspace_write(Vec::new());
        rules.read = ReadScope::Listed(vec!["/x".into()]);
        rules.hide_own(&[]);
        let expected = Policy::Confined(rules);
        assert_eq!(read_only_policy(&settings, &[]), expected);
    }
}
