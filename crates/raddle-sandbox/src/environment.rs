//! The part of the server's environment that a command inherits.
//!
//! The server's own environment holds keys of models and other secrets of its parent process. So
//! this is a list of the names that a command inherits, not of those that it does not.

use std::collections::BTreeMap;
use std::ffi::OsString;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Variables that a command may inherit. None of them grants access: no keys, no sockets of agents,
/// and no proxies, whose addresses may hold a password.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Prefix of further variables that a command may inherit.
const INHERITED_PREFIX: &str = "LC_";

/// Returns the environment of a command: the inherited variables of `server`, then `changes`, in
/// which a string sets a variable and `None` removes it.
pub fn of<S>(server: S, changes: &BTreeMap<String, Option<String>>) -> Vec<(OsString, OsString)>
where
    S: IntoIterator<Item = (OsString, OsString)>,
{
    let mut environment: BTreeMap<OsString, OsString> = server
        .into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(is_inherited))
        .collect();
    for (name, value) in changes {
        match value {
            Some(value) => drop(environment.insert(name.into(), value.into())),
            None => drop(environment.remove(std::ffi::OsStr::new(name))),
        }
    }
    environment.into_iter().collect()
}

/// Closes the memory and environment of this process to other processes of the same user, which
/// could otherwise read them in `/proc` or attach to it. Only a process that may trace everything
/// still can.
pub fn set_undumpable() -> std::io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with(INHERITED_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &[(&str, &str)], changes: &[(&str, Option<&str>)], expected: &[(&str, &str)]) {
        let server = server
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        let changes = changes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)))
            .collect();
        let expected: Vec<(OsString, OsString)> = expected
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        assert_eq!(of(server, &changes), expected);
    }

    #[test]
    fn only_listed_variables_are_inherited() {
        check(
            &[
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("OPENAI_API_KEY", "k"),
                ("SSH_AUTH_SOCK", "/s"),
                ("path", "/other"),
                ("LD_PRELOAD", "/x.so"),
            ],
            &[],
            &[("LC_ALL", "C"), ("PATH", "/bin")],
        );
    }

    #[test]
    fn a_client_sets_and_removes_what_it_likes() {
        check(
            &[("PATH", "/bin"), ("HOME", "/root"), ("TERM", "dumb")],
            &[
                ("HOME", None),
                ("TERM", Some("xterm")),
                ("API_KEY", Some("its own")),
                ("NEVER_THERE", None),
            ],
            &[("API_KEY", "its own"), ("PATH", "/bin"), ("TERM", "xterm")],
        );
    }
}
