//! Commands that clients run themselves. The user's rules bind the agent; the operator's limits
//! bind every client.

use super::command::RuleMatch;
use super::{ActKind, Layer, ParsedScript, Policy, Rule, Subject, Verdict};
use crate::Sandbox;

impl Policy {
    /// Returns the operator's objection to a command that a client runs in this sandbox, with the
    /// remedy; `None` if it is allowed. There is no request for approval, so a rule that may match
    /// forbids the command too.
    pub fn objection(&self, script: &ParsedScript, sandbox: &Sandbox) -> Option<String> {
        let by_rule = || self.managed_denial(script);
        self.managed.sandbox_objection(sandbox).or_else(by_rule)
    }

    /// Returns the operator's objection to a program that the configuration names and the server
    /// starts without a sandbox. Users and clients write the configuration too, so where only
    /// sandboxes are allowed the operator must have allowed this program.
    pub fn objection_to_configured(&self, script: &ParsedScript) -> Option<String> {
        let by_sandbox = || {
            let act = ActKind::Command {
                script: script.clone(),
                cwd: String::new(),
                beyond: true,
            };
            let counts = |rule: &Rule| rule.beyond && rule.layer == Layer::Managed;
            let is_allowed = self.permission(&act, counts, |_| false).is_some();
            (self.managed.always_sandboxed() && !is_allowed).then(|| {
                "the managed policy does not allow the sandbox danger-full-access, and a program of the configuration \
                 runs in none; a managed rule can allow it with `beyond = true`"
                    .to_owned()
            })
        };
        self.managed_denial(script).or_else(by_sandbox)
    }

    /// Returns the operator's objection to a tool that a client calls itself; `None` if it is
    /// allowed.
    pub fn objection_to_tool(&self, name: &str) -> Option<String> {
        let is_denied = |rule: &&Rule| {
            rule.layer == Layer::Managed
                && rule.verdict == Verdict::Deny
                && rule.is_about_tool(name)
        };
        let rule = self.rules.iter().find(is_denied)?;
        let reason = rule.reason.as_deref().unwrap_or("ask the operator");
        Some(format!("the managed rule `{rule}` forbids it; {reason}"))
    }

    /// Returns the reason of a managed rule that denies a script.
    fn managed_denial(&self, script: &ParsedScript) -> Option<String> {
        let is_denied =
            |rule: &&Rule| rule.layer == Layer::Managed && rule.verdict == Verdict::Deny;
        let fits = self.rules.iter().filter(is_denied);
        let fits = fits.map(|rule| (rule, rule.restrains(script)));
        let (rule, fit) = fits.max_by_key(|(_, fit)| *fit)?;
        let reason = rule.reason.as_deref().unwrap_or("ask the operator");
        match fit {
            RuleMatch::No => None,
            RuleMatch::Maybe => Some(format!(
                "the managed rule `{rule}` may forbid it, which is unknown before it runs; write out what \
                 is run"
            )),
            RuleMatch::Yes => Some(format!("the managed rule `{rule}` forbids it; {reason}")),
        }
    }

    /// Returns the operator's objection to a sandbox, with the remedy; `None` if it is allowed.
    pub fn objection_to_sandbox(&self, sandbox: &Sandbox) -> Option<String> {
        self.managed.sandbox_objection(sandbox)
    }

    /// Hosts that rules of these layers close to commands. A rule with the verdict to ask closes a
    /// host too, because no approval is possible while a command waits.
    pub fn closed_hosts(&self, layers: &[Layer]) -> Vec<String> {
        let counts = |it: &&Rule| it.verdict != Verdict::Allow && layers.contains(&it.layer);
        let hosts = self
            .rules
            .iter()
            .filter(counts)
            .filter_map(|it| match &it.subject {
                Subject::Host(pattern) => Some(pattern.to_string()),
                _ => None,
            });
        hosts.collect()
    }
}
