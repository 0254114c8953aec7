//! Commands that clients run themselves, and tools that they call. The user's rules about commands
//! bind the agent; the operator's limits bind every client.

use super::command::RuleMatch;
use super::{ActKind, Layer, ParsedScript, Policy, Rule, Subject, Verdict};
use crate::{Sandbox, Settings};

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

    /// Returns the objection to a tool, known by these names, that a client calls itself in a
    /// thread with these settings; `None` if it is allowed. Outside a turn there is no request for
    /// approval, so a managed rule that asks forbids the call too.
    pub fn objection_to_tool(&self, names: &[String], settings: &Settings) -> Option<String> {
        if let Some(objection) = self.managed.objection(settings) {
            return Some(objection);
        }
        let forbids = |rule: &&Rule| match (rule.verdict, rule.layer) {
            (Verdict::Deny, _) | (Verdict::Ask, Layer::Managed) => {
                names.iter().any(|name| rule.is_about_tool(name))
            }
            (Verdict::Ask, Layer::User) | (Verdict::Allow, _) => false,
        };
        let rule = self
            .rules
            .iter()
            .filter(forbids)
            .max_by_key(|it| it.verdict)?;
        let reason = rule.reason.as_deref();
        Some(match (rule.verdict, rule.layer) {
            (Verdict::Deny, Layer::User) => {
                let reason = reason.unwrap_or("change it in `rules.toml`");
                format!("the rule `{rule}` forbids it; {reason}")
            }
            (Verdict::Deny, Layer::Managed) => {
                let reason = reason.unwrap_or("ask the operator");
                format!("the managed rule `{rule}` forbids it; {reason}")
            }
            _ => format!(
                "the managed rule `{rule}` requires an approval, which only a call of the agent can \
                 get"
            ),
        })
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
