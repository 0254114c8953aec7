//! Commands that clients run by themselves. What the user wrote down is about the agent; what the operator holds
//! fast is about everyone.

use super::command::Fit;
use super::{Layer, Policy, Rule, Script, Subject, Verdict};
use crate::Sandbox;

impl Policy {
    /// What the operator has against a command that a client runs in this sandbox, and what to do; nothing if
    /// it may be. Nobody is asked, so what may be meant by a rule is forbidden too.
    pub fn objection(&self, script: &Script, sandbox: &Sandbox) -> Option<String> {
        let is_denied =
            |rule: &&Rule| rule.layer == Layer::Managed && rule.verdict == Verdict::Deny;
        let by_rule = || {
            let fits = self.rules.iter().filter(is_denied);
            let fits = fits.map(|rule| (rule, rule.restrains(script)));
            let (rule, fit) = fits.max_by_key(|(_, fit)| *fit)?;
            let reason = rule
                .reason
                .as_deref()
                .unwrap_or("ask whoever runs the machine");
            match fit {
                Fit::No => None,
                Fit::Maybe => Some(format!(
                    "the managed rule `{rule}` may forbid it, which cannot be told before it runs; write out what \
                     is run"
                )),
                Fit::Yes => Some(format!("the managed rule `{rule}` forbids it; {reason}")),
            }
        };
        self.pins.against(sandbox).or_else(by_rule)
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
