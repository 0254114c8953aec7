//! Rules for the hosts that commands may reach.

use super::host::{BadHost, EgressTarget, Host};

/// The ports of a rule that names none.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Allowed hosts, and denied ones among them. Empty rules allow nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EgressRules {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    hosts: HostSet,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostSet {
    /// Every name, but no address.
    All,
    /// Exactly this name or address.
    One(Host),
    /// All names below this one, and not itself.
    Below(String),
}

/// Decision of the rules about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Allowed at a public address.
    Allowed,
    /// Allowed at this very address, which a rule names.
    AllowedAddress,
    /// A rule denies it.
    Denied,
    /// The host is listed, but not with this port.
    OtherPort,
    /// No rule allows it.
    NotListed,
}

/// Reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is not a host rule: {why}")]
pub struct BadRule {
    rule: String,
    why: RuleProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum RuleProblem {
    #[error(transparent)]
    Host(#[from] BadHost),
    #[error("a star stands for whole labels at the beginning, as in `*.example.com`")]
    Star,
    #[error("there are no addresses below an address")]
    Address,
}

impl EgressRules {
    /// Parses lists of `HOST`, `*.HOST`, `HOST:PORT` and `*.HOST:PORT`. A denied host is denied on
    /// every port unless the rule names one.
    pub fn parse<'a>(
        allow: impl IntoIterator<Item = &'a str>,
        deny: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, BadRule> {
        Ok(Self {
            allow: allow.into_iter().map(rule).collect::<Result<_, _>>()?,
            deny: deny.into_iter().map(rule).collect::<Result<_, _>>()?,
        })
    }

    /// Allows every name on the usual ports at public addresses, and nothing else.
    pub fn all_public() -> Self {
        let rule = Rule {
            hosts: HostSet::All,
            port: None,
        };
        Self {
            allow: vec![rule],
            deny: Vec::new(),
        }
    }

    /// Adds denied hosts. `*` stands for every host.
    pub fn without<'a>(mut self, deny: impl IntoIterator<Item = &'a str>) -> Result<Self, BadRule> {
        for text in deny {
            if text == "*" {
                return Ok(Self::default());
            }
            self.deny.push(rule(text)?);
        }
        Ok(self)
    }

    /// Returns whether a target may be reached.
    pub fn verdict(&self, target: &EgressTarget) -> Verdict {
        let denied = |rule: &Rule| {
            rule.hosts.contains(&target.host) && rule.port.is_none_or(|port| port == target.port)
        };
        if self.deny.iter().any(denied) {
            return Verdict::Denied;
        }
        let mut listed = self
            .allow
            .iter()
            .filter(|rule| rule.hosts.contains(&target.host))
            .peekable();
        if listed.peek().is_none() {
            return Verdict::NotListed;
        }
        let has_port = |rule: &Rule| match rule.port {
            Some(port) => port == target.port,
            None => USUAL_PORTS.contains(&target.port),
        };
        match (listed.any(has_port), &target.host) {
            (false, _) => Verdict::OtherPort,
            (true, Host::Name(_)) => Verdict::Allowed,
            (true, Host::Address(_)) => Verdict::AllowedAddress,
        }
    }
}

impl HostSet {
    fn contains(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::All, host) => matches!(host, Host::Name(_)),
            (Self::One(one), host) => one == host,
            (Self::Below(parent), Host::Name(name)) => name
                .strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.ends_with('.')),
            (Self::Below(_), Host::Address(_)) => false,
        }
    }
}

fn rule(text: &str) -> Result<Rule, BadRule> {
    let bad = |why: RuleProblem| BadRule {
        rule: text.to_owned(),
        why,
    };
    let (below, rest) = match text.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if rest.contains('*') {
        return Err(bad(RuleProblem::Star));
    }
    // A missing port is not 0, which no target has.
    let has_port = rest.rfind(':').is_some_and(|at| !rest[at..].contains(']'));
    let (host, port) = if has_port {
        let target = EgressTarget::parse(rest, None).map_err(|why| bad(why.into()))?;
        (target.host, Some(target.port))
    } else {
        (Host::parse(rest).map_err(|why| bad(why.into()))?, None)
    };
    let hosts = match (below, host) {
        (false, host) => HostSet::One(host),
        (true, Host::Name(name)) => HostSet::Below(name),
        (true, Host::Address(_)) => return Err(bad(RuleProblem::Address)),
    };
    Ok(Rule { hosts, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let allow = [
            "example.com",
            "*.pkg.example",
            "api.test:8443",
            "127.0.0.1:3000",
            "[::1]:3000",
            "open.example",
        ];
        let deny = ["private.pkg.example", "open.example:80"];
        let rules = EgressRules::parse(allow, deny).expect("rules");
        for (target, verdict) in [
            ("example.com:443", Verdict::Allowed),
            ("Example.COM:80", Verdict::Allowed),
            ("example.com:22", Verdict::OtherPort),
            ("sub.example.com:443", Verdict::NotListed),
            ("notexample.com:443", Verdict::NotListed),
            ("example.com.evil.test:443", Verdict::NotListed),
            ("a.pkg.example:443", Verdict::Allowed),
            ("a.b.pkg.example:443", Verdict::Allowed),
            ("pkg.example:443", Verdict::NotListed),
            ("evilpkg.example:443", Verdict::NotListed),
            ("private.pkg.example:443", Verdict::Denied),
            ("private.pkg.example:9999", Verdict::Denied),
            ("api.test:8443", Verdict::Allowed),
            ("api.test:443", Verdict::OtherPort),
            ("open.example:443", Verdict::Allowed),
            ("open.example:80", Verdict::Denied),
            ("127.0.0.1:3000", Verdict::AllowedAddress),
            ("127.0.0.1:80", Verdict::OtherPort),
            ("[::1]:3000", Verdict::AllowedAddress),
            ("[::ffff:127.0.0.1]:3000", Verdict::NotListed),
            ("localhost:3000", Verdict::NotListed),
        ] {
            let parsed = EgressTarget::parse(target, None).expect("a target");
            assert_eq!(rules.verdict(&parsed), verdict, "{target}");
            assert_eq!(EgressRules::default().verdict(&parsed), Verdict::NotListed);
        }
    }

    #[test]
    fn all_that_is_public_is_named_and_on_a_usual_port() {
        for (target, verdict) in [
            ("example.com:443", Verdict::Allowed),
            ("localhost:80", Verdict::Allowed),
            ("example.com:22", Verdict::OtherPort),
            ("93.184.216.34:443", Verdict::NotListed),
            ("127.0.0.1:80", Verdict::NotListed),
        ] {
            let parsed = EgressTarget::parse(target, None).expect("a target");
            assert_eq!(
                EgressRules::all_public().verdict(&parsed),
                verdict,
                "{target}"
            );
        }
    }

    #[test]
    fn more_can_be_denied() {
        for (deny, verdict) in [
            (&[][..], Verdict::Allowed),
            (&["*.example.com"], Verdict::Denied),
            (&["other.test", "a.example.com"], Verdict::Denied),
            (&["other.test", "*"], Verdict::NotListed),
        ] {
            let rules = EgressRules::all_public().without(deny.iter().copied());
            let parsed = EgressTarget::parse("a.example.com:443", None).expect("a target");
            assert_eq!(rules.expect("rules").verdict(&parsed), verdict, "{deny:?}");
        }
    }

    #[test]
    fn invalid_rules_are_rejected() {
        for text in [
            "",
            "*",
            "*.",
            "**.a",
            "a.*",
            "a*.b",
            "*.10.0.0.1",
            "a:b",
            "a:0",
            "a b",
            "http://a",
            "*.[::1]",
            "a/",
            ".a",
        ] {
            assert!(EgressRules::parse([text], []).is_err(), "{text:?}");
        }
    }
}
