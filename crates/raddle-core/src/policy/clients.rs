//! Commands that clients run by themselves. What the user wrote down is about the agent; what the operator holds
//! fast is about everyone.

use super::command::RuleMatch;
use super::{ActKind, Layer, ParsedScript, Policy, Rule, Subject, Verdict};
use crate::Sandbox;

impl Policy {
    /// What the operator has against a command that a client runs in this sandbox, and what to do; nothing if
    /// it may be. Nobody is asked, so what may be meant by a rule is forbidden too.
    pub fn objection(&self, script: &ParsedScript, sandbox: &Sandbox) -> Option<String> {
        let by_rule = || self.managed_denial(script);
        self.managed.against(sandbox).or_else(by_rule)
    }

    /// The operator's objection to a program that the configuration names and the server starts without a sandbox.
    /// Users and clients write the configuration too, so where only sandboxes are allowed the operator must have
    /// allowed this one.
    pub fn objection_to_configured(&self, script: &ParsedScript) -> Option<String> {
        let held = || {
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
        self.managed_denial(script).or_else(held)
    }

    /// The reason of a managed rule that denies a script.
    fn managed_denial(&self, script: &ParsedScript) -> Option<String> {
        let is_denied =
            |rule: &&Rule| rule.layer == Layer::Managed && rule.verdict == Verdict::Deny;
        let fits = self.rules.iter().filter(is_denied);
        let fits = fits.map(|rule| (rule, rule.restrains(script)));
        let (rule, fit) = fits.max_by_key(|(_, fit)| *fit)?;
        let reason = rule
            .reason
            .as_deref()
            .unwrap_or("ask whoever runs the machine");
        match fit {
            RuleMatch::No => None,
            RuleMatch::Maybe => Some(format!(
                "the managed rule `{rule}` may forbid it, which cannot be told before it runs; write out what \
                 is run"
            )),
            RuleMatch::Yes => Some(format!("the managed rule `{rule}` forbids it; {reason}")),
        }
    }

    /// The operator's objection to a sandbox, and what to do; `None` if it is allowed.
    pub fn objection_to_sandbox(&self, sandbox: &Sandbox) -> Option<String> {
        self.managed.against(sandbox)
    }

    /// The hosts that rules of these layers keep from commands. One that asks closes a host too, because nobody
    /// can be asked while a command waits.
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
