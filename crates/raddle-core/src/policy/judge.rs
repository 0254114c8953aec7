//! Judgement of an act: the strictest of all applicable rules and limits.

use std::collections::BTreeSet;

use super::approval_digest::session_file;
use super::command::RuleMatch;
use super::harmless::{Isolation, is_bare_shell, is_harmless};
use super::managed_limits::network;
use super::wrapper::wrapped_command;
use super::{
    Act, ActKind, Layer, McpRisk, ParsedScript, PathPattern, Policy, Rule, Ruling, Subject, Verdict,
};
use crate::{ApprovalPolicy, Grant, Settings};

/// Named by a ruling if only the approval policy requires a request.
pub(super) const APPROVAL_POLICY: &str = "approvalPolicy";

/// Named by a ruling if the act goes beyond the sandbox.
const SANDBOX: &str = "sandbox";

/// Named by a ruling if the user approved this act for the session.
const SESSION: &str = "session";

/// Named by a ruling if a limit of the operator decides.
const MANAGED: &str = "managed";

/// A verdict and its grounds, before they are tied to an act.
struct VerdictReason {
    verdict: Verdict,
    reason: String,
    rule: String,
}

impl Policy {
    /// Judges an act in a thread with these settings. `granted` holds the digests and files that
    /// are approved for the session.
    pub fn judge(&self, act: &Act, settings: &Settings, granted: &BTreeSet<String>) -> Ruling {
        let assessment = self.assess(act, settings, granted);
        let VerdictReason {
            verdict,
            reason,
            rule,
        } = assessment;
        Ruling {
            verdict,
            reason,
            rule,
            digest: act.digest.clone(),
            files: match verdict {
                Verdict::Ask => files(&act.kind, settings),
                Verdict::Allow | Verdict::Deny => Vec::new(),
            },
        }
    }

    /// Judges a request for rights beyond the sandbox. Only the user's answer grants them.
    pub fn judge_rights(&self, requested: &Grant, settings: &Settings, digest: String) -> Ruling {
        let VerdictReason {
            verdict,
            reason,
            rule,
        } = self.assess_rights(requested, settings);
        Ruling {
            verdict,
            reason,
            rule,
            digest,
            files: Vec::new(),
        }
    }

    fn assess_rights(&self, requested: &Grant, settings: &Settings) -> VerdictReason {
        if let Some(objection) = self.managed.objection(settings) {
            let reason = format!("Not allowed: {objection}.");
            return verdict_reason(Verdict::Deny, &reason, MANAGED);
        }
        if self.managed.always_sandboxed() {
            let reason = "The operator allows nothing beyond the sandbox.";
            return verdict_reason(Verdict::Deny, reason, MANAGED);
        }
        if requested.network && self.managed.network_off {
            let reason = "The operator keeps the network off.";
            return verdict_reason(Verdict::Deny, reason, MANAGED);
        }
        let act = ActKind::Write {
            paths: requested.write.clone(),
            reads: Vec::new(),
            beyond: true,
        };
        if let Some((rule, RuleMatch::Yes)) = self.restraint(&act)
            && rule.verdict == Verdict::Deny
        {
            return by_rule(rule, Verdict::Deny, "A rule forbids it.");
        }
        let ask = verdict_reason(Verdict::Ask, "It goes beyond the sandbox.", SANDBOX);
        ask_or_deny(ask, settings, "request_permissions")
    }

    fn assess(&self, act: &Act, settings: &Settings, granted: &BTreeSet<String>) -> VerdictReason {
        if let Some(objection) = self.managed.objection(settings) {
            return verdict_reason(
                Verdict::Deny,
                &format!("Not allowed: {objection}."),
                MANAGED,
            );
        }
        let restraint = self.restraint(&act.kind);
        if let Some((rule, RuleMatch::Yes)) = restraint
            && rule.verdict == Verdict::Deny
        {
            return by_rule(rule, Verdict::Deny, "A rule forbids it.");
        }
        let goes_beyond = goes_beyond(&act.kind, settings);
        let mut beyond = goes_beyond.then(|| self.beyond(&act.kind, settings));
        // No approval overrides a limit of the operator.
        if let Some(it) = beyond.take_if(|it| it.rule == MANAGED) {
            return it;
        }
        let files = files(&act.kind, settings);
        let has_files = !files.is_empty() && files.iter().all(|it| granted.contains(it));
        if granted.contains(&act.digest) || has_files {
            return verdict_reason(Verdict::Allow, "It was allowed for this session.", SESSION);
        }
        let by_restraint = restraint.map(|(rule, fit)| {
            let reason = match fit {
                RuleMatch::Yes => "A rule requires approval.",
                _ => "A rule may match it, which is unknown before it runs.",
            };
            ask_or_deny(by_rule(rule, Verdict::Ask, reason), settings, "rules")
        });
        let within = match (beyond, &act.kind, &settings.approval) {
            (Some(it), _, _) => it,
            (None, ActKind::McpTool { risk, .. }, _) => self.mcp_tool(&act.kind, *risk, settings),
            (None, _, ApprovalPolicy::Untrusted) => {
                self.untrusted(&act.kind, Isolation::of(&settings.sandbox))
            }
            (None, _, _) => {
                let reason = match Isolation::of(&settings.sandbox) {
                    Isolation::Sandboxed => "It stays in the sandbox.",
                    Isolation::Unconfined => "There is no sandbox to go beyond.",
                };
                verdict_reason(Verdict::Allow, reason, APPROVAL_POLICY)
            }
        };
        match by_restraint {
            Some(it) if it.verdict >= within.verdict => it,
            _ => within,
        }
    }

    /// Patterns that rules close to reading below a folder. Patterns that match the folder itself
    /// are left out: reading it has been approved already.
    pub fn closed_below(&self, folder: &str) -> Vec<PathPattern> {
        let restraining = self.rules.iter().filter(|it| it.verdict != Verdict::Allow);
        let patterns = restraining.filter_map(|it| match &it.subject {
            Subject::Read(pattern) if !pattern.fits(folder) => Some(pattern.clone()),
            _ => None,
        });
        patterns.collect()
    }

    /// Judges an act beyond the sandbox.
    fn beyond(&self, act: &ActKind, settings: &Settings) -> VerdictReason {
        let is_open = |rule: &Rule| {
            rule.beyond && (rule.layer == Layer::Managed || !self.managed.always_sandboxed())
        };
        if let Some(rule) = self.permission(act, is_open, |_| false) {
            return by_rule(rule, Verdict::Allow, "A rule allows it beyond the sandbox.");
        }
        if self.is_managed(act, settings) {
            let reason = "It goes beyond the sandbox, and the operator allows nothing beyond it.";
            return verdict_reason(Verdict::Deny, reason, MANAGED);
        }
        let ask = verdict_reason(Verdict::Ask, "It goes beyond the sandbox.", SANDBOX);
        ask_or_deny(ask, settings, "sandbox_approval")
    }

    /// Whether the operator allows no approval of the act.
    fn is_managed(&self, act: &ActKind, settings: &Settings) -> bool {
        self.managed.always_sandboxed() && goes_beyond(act, settings)
    }

    /// Judges an act within the sandbox under the approval policy `untrusted`.
    fn untrusted(&self, act: &ActKind, confinement: Isolation) -> VerdictReason {
        if is_known(act, confinement) {
            return verdict_reason(
                Verdict::Allow,
                "It is known to be harmless.",
                APPROVAL_POLICY,
            );
        }
        if let Some(rule) = self.permission(act, |_| true, |it| is_harmless(it, confinement)) {
            return by_rule(rule, Verdict::Allow, "A rule allows it.");
        }
        verdict_reason(
            Verdict::Ask,
            "It is not known to be harmless.",
            APPROVAL_POLICY,
        )
    }

    /// Judges a call of an MCP tool that no rule restrains.
    fn mcp_tool(&self, act: &ActKind, risk: McpRisk, settings: &Settings) -> VerdictReason {
        if let Some(rule) = self.permission(act, |_| true, |_| false) {
            return by_rule(rule, Verdict::Allow, "A rule allows it.");
        }
        let needs_approval = match (risk, &settings.approval) {
            (McpRisk::Approved, _) => false,
            (McpRisk::Prompt, _) => true,
            (_, ApprovalPolicy::Never) => false,
            (_, ApprovalPolicy::Untrusted) => true,
            (McpRisk::DeclaredHarmless, _) => false,
            (McpRisk::Unknown, _) => match Isolation::of(&settings.sandbox) {
                Isolation::Sandboxed => true,
                Isolation::Unconfined => false,
            },
        };
        if !needs_approval {
            let reason = "The MCP server is configured, and nothing requires approval.";
            return verdict_reason(Verdict::Allow, reason, APPROVAL_POLICY);
        }
        let reason = "The tool of an MCP server may change something outside the sandbox.";
        let ask = verdict_reason(Verdict::Ask, reason, APPROVAL_POLICY);
        ask_or_deny(ask, settings, ApprovalPolicy::MCP)
    }

    /// Returns the rule that restrains this act most, and how surely it matches.
    fn restraint(&self, act: &ActKind) -> Option<(&Rule, RuleMatch)> {
        let restraining = self.rules.iter().filter(|it| it.verdict != Verdict::Allow);
        restraining
            .map(|rule| (rule, fit(rule, act)))
            .filter(|(_, fit)| *fit != RuleMatch::No)
            // A rule that surely matches goes before one that may match, and then the stricter.
            .max_by_key(|(rule, fit)| {
                (
                    *fit == RuleMatch::Yes && rule.verdict == Verdict::Deny,
                    *fit,
                )
            })
    }

    /// Returns a rule that allows this act, if a rule allows everything in it or it is otherwise
    /// known.
    pub(super) fn permission(
        &self,
        act: &ActKind,
        counts: impl Fn(&Rule) -> bool,
        known: impl Fn(&[String]) -> bool,
    ) -> Option<&Rule> {
        let rules: Vec<&Rule> = self
            .rules
            .iter()
            .filter(|it| it.verdict == Verdict::Allow && counts(it))
            .collect();
        let find = |is_about: &dyn Fn(&Rule) -> bool| rules.iter().copied().find(|it| is_about(it));
        match act {
            ActKind::Command { script, .. } => permitted_script(script, &rules, known),
            ActKind::Write { paths, .. } => {
                let matching: Option<Vec<&Rule>> = paths
                    .iter()
                    .map(|path| find(&|it| it.is_about_write(path)))
                    .collect();
                matching?.first().copied()
            }
            ActKind::Read { path } => find(&|it| it.is_about_read(path)),
            ActKind::Connect { host } => find(&|it| it.is_about_host(host)),
            ActKind::Tool { name } | ActKind::McpTool { name, .. } => {
                find(&|it| it.is_about_tool(name))
            }
        }
    }
}

/// Returns a rule that allows a script, if rules allow all of it. A script that is not plain is
/// never allowed: its other effects are unknown.
fn permitted_script<'a>(
    script: &ParsedScript,
    rules: &[&'a Rule],
    known: impl Fn(&[String]) -> bool,
) -> Option<&'a Rule> {
    if !script.plain {
        return None;
    }
    let mut deciding = None;
    for words in &script.commands {
        // A command that a neutral wrapper runs is listed in the script by itself.
        let is_listed = |start: usize| script.commands.iter().any(|it| it == &words[start..]);
        let is_transparent = is_bare_shell(words)
            || wrapped_command(words).is_some_and(|it| it.neutral && is_listed(it.starts[0]));
        if known(words) || is_transparent {
            continue;
        }
        let rule = rules.iter().find(|it| it.allows(words))?;
        deciding.get_or_insert(*rule);
    }
    deciding
}

/// Whether the act is harmless, whatever its target.
fn is_known(act: &ActKind, confinement: Isolation) -> bool {
    match act {
        ActKind::Command { script, .. } => {
            let commands = &script.commands;
            script.plain
                && !commands.is_empty()
                && commands.iter().all(|it| is_harmless(it, confinement))
        }
        // The client that runs a tool sees the call first.
        ActKind::Read { .. } | ActKind::Tool { .. } => true,
        // A change that does not apply only reads.
        ActKind::Write { paths, reads, .. } => paths.is_empty() && !reads.is_empty(),
        ActKind::Connect { .. } | ActKind::McpTool { .. } => false,
    }
}

fn fit(rule: &Rule, act: &ActKind) -> RuleMatch {
    let is_about = match act {
        ActKind::Command { script, .. } => return rule.restrains(script),
        ActKind::Write { paths, reads, .. } => {
            paths.iter().any(|path| rule.is_about_write(path))
                || reads.iter().any(|path| rule.is_about_read(path))
        }
        ActKind::Read { path } => rule.is_about_read(path),
        ActKind::Connect { host } => rule.is_about_host(host),
        ActKind::Tool { name } | ActKind::McpTool { name, .. } => rule.is_about_tool(name),
    };
    if is_about {
        RuleMatch::Yes
    } else {
        RuleMatch::No
    }
}

/// Returns the scope of an approval of a change of files for the session.
fn files(act: &ActKind, settings: &Settings) -> Vec<String> {
    let ActKind::Write { paths, .. } = act else {
        return Vec::new();
    };
    paths.iter().map(|it| session_file(it, settings)).collect()
}

fn goes_beyond(act: &ActKind, settings: &Settings) -> bool {
    match act {
        ActKind::Command { beyond, .. } | ActKind::Write { beyond, .. } => *beyond,
        ActKind::Connect { .. } => !network(&settings.sandbox),
        ActKind::Read { .. } | ActKind::Tool { .. } | ActKind::McpTool { .. } => false,
    }
}

/// Returns `ask`, or a denial if the approval policy forbids this kind of request.
fn ask_or_deny(ask: VerdictReason, settings: &Settings, kind: &str) -> VerdictReason {
    if settings.approval.may_ask(kind) {
        return ask;
    }
    VerdictReason {
        verdict: Verdict::Deny,
        reason: format!("{} The approval policy forbids asking.", ask.reason),
        ..ask
    }
}

fn by_rule(rule: &Rule, verdict: Verdict, reason: &str) -> VerdictReason {
    verdict_reason(
        verdict,
        rule.reason.as_deref().unwrap_or(reason),
        &rule.to_string(),
    )
}

fn verdict_reason(verdict: Verdict, reason: &str, rule: &str) -> VerdictReason {
    VerdictReason {
        verdict,
        reason: reason.to_owned(),
        rule: rule.to_owned(),
    }
}
