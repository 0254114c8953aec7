//! The network of a plugin: the hosts of its manifest that the user and the operator allow.

use raddle_sandbox::egress::{EgressRules, EgressTarget, Verdict};

use super::manifest::Manifest;
use crate::process::{NetworkAccess, Operator};

/// Prefix of the permissions that name a host.
pub(super) const PREFIX: &str = "network:";

/// The ports of a host that names none.
const PORTS: [u16; 2] = [80, 443];

/// Whether a text is a host, with or without a port.
pub(super) fn is_host(text: &str) -> bool {
    EgressTarget::parse(text, Some(PORTS[0])).is_ok()
}

impl Manifest {
    /// Returns the permissions for hosts that the plugin may connect to.
    pub fn network_permissions(&self) -> impl Iterator<Item = &String> {
        let permissions = self.permissions.iter();
        permissions.filter(|it| it.starts_with(PREFIX))
    }
}

/// Returns the hosts that a process with these permissions may reach; `None` if it has no network.
/// It may block on the disk.
pub(super) fn rules(permissions: &[String], operator: &dyn Operator) -> Option<EgressRules> {
    let is_listed = match operator.network() {
        NetworkAccess::None => return None,
        NetworkAccess::Listed(_) => true,
        NetworkAccess::Open => false,
    };
    // They leave out what rules of the operator deny. Empty ones deny every host.
    let limits = operator
        .hosts()
        .filter(|it| *it != EgressRules::default())?;
    let hosts = permissions.iter().filter_map(|it| it.strip_prefix(PREFIX));
    let targets = hosts.flat_map(|host| PORTS.map(|port| EgressTarget::parse(host, Some(port))));
    let allowed = targets.flatten().filter(|it| match limits.verdict(it) {
        Verdict::Allowed | Verdict::AllowedAddress => true,
        Verdict::Denied => false,
        // The user trusts the plugin with hosts that no list of the operator leaves out.
        Verdict::OtherPort | Verdict::NotListed => !is_listed,
    });
    let allowed: Vec<String> = allowed.map(|it| it.to_string()).collect();
    let rules = EgressRules::parse(allowed.iter().map(String::as_str), []).ok()?;
    (!allowed.is_empty()).then_some(rules)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use raddle_core::Settings;

    use super::*;

    /// An operator with this list of hosts and these denied ones.
    struct FakeOperator {
        listed: Option<&'static [&'static str]>,
        denied: &'static [&'static str],
        is_off: bool,
    }

    impl Operator for FakeOperator {
        fn network(&self) -> NetworkAccess {
            match (self.is_off, self.listed) {
                (true, _) => NetworkAccess::None,
                (false, None) => NetworkAccess::Open,
                (false, Some(_)) => NetworkAccess::Listed(self.hosts().expect("hosts")),
            }
        }

        fn hosts(&self) -> Option<EgressRules> {
            let hosts = match self.listed {
                None => EgressRules::all_public(),
                Some(hosts) => EgressRules::parse(hosts.iter().copied(), []).expect("hosts"),
            };
            hosts.without(self.denied.iter().copied()).ok()
        }

        fn accepts_second(&self) -> bool {
            false
        }

        fn objection(&self, _: &[String]) -> Option<String> {
            None
        }

        fn objection_to_settings(&self, _: &Settings) -> Option<String> {
            None
        }

        fn workspaces(&self, _: &Settings) -> Vec<PathBuf> {
            Vec::new()
        }
    }

    #[test]
    fn a_plugin_reaches_the_hosts_of_its_manifest_that_the_operator_does_not_forbid() {
        let permissions = [
            "workspace.read",
            "network:api.example",
            "network:git.example:8443",
            "network:127.0.0.1:3000",
        ];
        let permissions = permissions.map(str::to_owned);
        let targets = [
            "api.example:80",
            "api.example:443",
            "api.example:8443",
            "git.example:8443",
            "git.example:443",
            "127.0.0.1:3000",
            "127.0.0.1:80",
            "sub.api.example:443",
            "other.example:443",
        ];
        let off = true;
        for (listed, denied, is_off, expected) in [
            (None, &[][..], !off, vec![0, 1, 3, 5]),
            (None, &["api.example"], !off, vec![3, 5]),
            (None, &["*"], !off, vec![]),
            (None, &[], off, vec![]),
            (
                Some(&["api.example", "other.example"][..]),
                &[],
                !off,
                vec![0, 1],
            ),
            (Some(&["*.example"]), &["git.example"], !off, vec![0, 1]),
            (Some(&["127.0.0.1:3000"]), &[], !off, vec![5]),
            (Some(&["other.example"]), &[], !off, vec![]),
            (Some(&[]), &[], !off, vec![]),
        ] {
            let operator = FakeOperator {
                listed,
                denied,
                is_off,
            };
            let rules = rules(&permissions, &operator);
            let is_reached = |target: &&str| {
                let target = EgressTarget::parse(target, None).expect("a target");
                let verdict = rules.as_ref().map(|it| it.verdict(&target));
                matches!(verdict, Some(Verdict::Allowed | Verdict::AllowedAddress))
            };
            let reached: Vec<&str> = targets.into_iter().filter(|it| is_reached(it)).collect();
            let expected: Vec<&str> = expected.into_iter().map(|it: usize| targets[it]).collect();
            assert_eq!(reached, expected, "{listed:?} {denied:?} {is_off}");
            assert_eq!(rules.is_none(), expected.is_empty());
        }
        let operator = FakeOperator {
            listed: None,
            denied: &[],
            is_off: false,
        };
        assert_eq!(super::rules(&permissions[..1], &operator), None);
    }

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for (text, expected) in [
            ("api.example", true),
            ("api.example:8443", true),
            ("127.0.0.1:3000", true),
            ("[::1]:3000", true),
            ("*.example", false),
            ("*", false),
            ("api.example:0", false),
            ("https://api.example", false),
            ("", false),
        ] {
            assert_eq!(is_host(text), expected, "{text}");
        }
    }
}
