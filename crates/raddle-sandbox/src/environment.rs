//! What of the server's environment a command gets to see.
//!
//! The server's own environment holds keys of models and whatever else its starter had in it. So a
//! command's is not that without some names, but only these names.

use std::collections::BTreeMap;
use std::ffi::OsString;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// What a command may inherit. None of it opens anything: no keys, no sockets of agents, and no proxies,
/// whose addresses may hold a password.
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

/// And all with this prefix.
const INHERITED_PREFIX: &str = "LC_";

/// The environment of a command: what of `server` may be inherited, then `changes`, in which a string
/// sets a variable and nothing removes it.
pub fn of<S>(server: S, changes: &BTreeMap<String, Option<String>>) -> Vec<(OsString, OsString)>
where
    S: IntoIterator<Item = (OsString, OsString)>,
{
    let mut whole: BTreeMap<OsString, OsString> = server
        .into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(is_inherited))
        .collect();
    for (name, value) in changes {
        match value {
            Some(value) => drop(whole.insert(name.into(), value.into())),
            None => drop(whole.remove(std::ffi::OsStr::new(name))),
        }
    }
    whole.into_iter().collect()
}

/// Closes this process's own memory and environment to other processes of the same user, which could
/// otherwise read them in `/proc` or attach to it. Only one that may trace everything still can.
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
    fn only_what_is_listed_is_inherited() {
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
