//! How an act is judged: the strictest of all that is said about it.

use std::collections::BTreeSet;

use serde_json::json;

use super::command::RuleMatch;
use super::harmless::{Isolation, is_bare_shell, is_harmless};
use super::managed_limits::network;
use super::wrapper::wrapped_command;
use super::{
    Act, ActKind, Layer, ParsedScript, PathPattern, Policy, Rule, Ruling, Subject, Verdict,
};
use crate::{ApprovalPolicy, Grant, Settings};

/// What a ruling names if only the approval policy wants someone to be asked.
pub(super) const APPROVAL_POLICY: &str = "approvalPolicy";

/// What a ruling names if the act goes beyond the sandbox.
const SANDBOX: &str = "sandbox";

/// What a ruling names if someone said yes to this act for the session.
const SESSION: &str = "session";

/// What a ruling names if whoever runs the machine holds something else fast.
const MANAGED: &str = "managed";

/// A verdict and its grounds, before they are tied to an act.
struct VerdictReason {
    verdict: Verdict,
    reason: String,
    rule: String,
}

impl Policy {
    /// What is said of an act in a thread with these settings, in which these digests and files have a yes for
    /// the session.
    pub fn judge(&self, act: &Act, settings: &Settings, granted: &BTreeSet<String>) -> Ruling {
        let said = self.assess(act, settings, granted);
        let VerdictReason {
            verdict,
            reason,
            rule,
        } = said;
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

    /// What is said of a wish for rights beyond the sandbox. Nothing but somebody's answer gives them.
    pub fn judge_rights(&self, wanted: &Grant, settings: &Settings, digest: String) -> Ruling {
        let VerdictReason {
            verdict,
            reason,
            rule,
        } = self.assess_rights(wanted, settings);
        Ruling {
            verdict,
            reason,
            rule,
            digest,
            files: Vec::new(),
        }
    }

    fn assess_rights(&self, wanted: &Grant, settings: &Settings) -> VerdictReason {
        if let Some(objection) = self.managed.objection(settings) {
            let why = format!("It may not be: {objection}.");
            return verdict_reason(Verdict::Deny, &why, MANAGED);
        }
        if self.managed.always_sandboxed() {
            let why = "The operator allows nothing beyond the sandbox.";
            return verdict_reason(Verdict::Deny, why, MANAGED);
        }
        if wanted.network && self.managed.network_off {
            let why = "The operator keeps the network off.";
            return verdict_reason(Verdict::Deny, why, MANAGED);
        }
        let act = ActKind::Write {
            paths: wanted.write.clone(),
            reads: Vec::new(),
            beyond: true,
        };
        if let Some((rule, RuleMatch::Yes)) = self.restraint(&act)
            && rule.verdict == Verdict::Deny
        {
            return by_rule(rule, Verdict::Deny, "A rule forbids it.");
        }
        let ask = verdict_reason(Verdict::Ask, "It goes beyond the sandbox.", SANDBOX);
        asked(ask, settings, "request_permissions")
    }

    fn assess(&self, act: &Act, settings: &Settings, granted: &BTreeSet<String>) -> VerdictReason {
        if let Some(objection) = self.managed.objection(settings) {
            return verdict_reason(
                Verdict::Deny,
                &format!("It may not be: {objection}."),
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
        // No yes leads where the operator lets nobody go.
        if let Some(it) = beyond.take_if(|it| it.rule == MANAGED) {
            return it;
        }
        let files = files(&act.kind, settings);
        let has_files = !files.is_empty() && files.iter().all(|it| granted.contains(it));
        if granted.contains(&act.digest) || has_files {
            return verdict_reason(Verdict::Allow, "It was allowed for this session.", SESSION);
        }
        let by_restraint = restraint.map(|(rule, fit)| {
            let why = match fit {
                RuleMatch::Yes => "A rule says to ask.",
                _ => "A rule may be about it, which cannot be told before it runs.",
            };
            asked(by_rule(rule, Verdict::Ask, why), settings, "rules")
        });
        let within = match (beyond, &settings.approval) {
            (Some(it), _) => it,
            (None, ApprovalPolicy::Untrusted) => {
                self.untrusted(&act.kind, Isolation::of(&settings.sandbox))
            }
            (None, _) => {
                verdict_reason(Verdict::Allow, "It stays in the sandbox.", APPROVAL_POLICY)
            }
        };
        match by_restraint {
            Some(it) if it.verdict >= within.verdict => it,
            _ => within,
        }
    }

    /// What rules close to reading below a folder, of those that are not about the folder itself: whoever may
    /// read that has been asked about it.
    pub fn closed_below(&self, folder: &str) -> Vec<PathPattern> {
        let restraining = self.rules.iter().filter(|it| it.verdict != Verdict::Allow);
        let patterns = restraining.filter_map(|it| match &it.subject {
            Subject::Read(pattern) if !pattern.fits(folder) => Some(pattern.clone()),
            _ => None,
        });
        patterns.collect()
    }

    /// What is said of an act beyond the sandbox.
    fn beyond(&self, act: &ActKind, settings: &Settings) -> VerdictReason {
        let is_open = |rule: &Rule| {
            rule.beyond && (rule.layer == Layer::Managed || !self.managed.always_sandboxed())
        };
        if let Some(rule) = self.permission(act, is_open, |_| false) {
            return by_rule(rule, Verdict::Allow, "A rule allows it beyond the sandbox.");
        }
        if self.is_managed(act, settings) {
            let why = "It goes beyond the sandbox, and the operator allows nothing beyond it.";
            return verdict_reason(Verdict::Deny, why, MANAGED);
        }
        let ask = verdict_reason(Verdict::Ask, "It goes beyond the sandbox.", SANDBOX);
        asked(ask, settings, "sandbox_approval")
    }

    /// Whether the operator lets nobody say yes to it.
    fn is_managed(&self, act: &ActKind, settings: &Settings) -> bool {
        self.managed.always_sandboxed() && goes_beyond(act, settings)
    }

    /// What is said of an act within the sandbox where only what is known is trusted.
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

    /// The rule that restrains this act most, and how surely it is about it.
    fn restraint(&self, act: &ActKind) -> Option<(&Rule, RuleMatch)> {
        let restraining = self.rules.iter().filter(|it| it.verdict != Verdict::Allow);
        restraining
            .map(|rule| (rule, fit(rule, act)))
            .filter(|(_, fit)| *fit != RuleMatch::No)
            // A rule that is surely meant goes before one that may be, and then the stricter.
            .max_by_key(|(rule, fit)| {
                (
                    *fit == RuleMatch::Yes && rule.verdict == Verdict::Deny,
                    *fit,
                )
            })
    }

    /// A rule that allows this act, if everything in it is allowed by one or known otherwise.
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
                let found: Option<Vec<&Rule>> = paths
                    .iter()
                    .map(|path| find(&|it| it.is_about_write(path)))
                    .collect();
                found?.first().copied()
            }
            ActKind::Read { path } => find(&|it| it.is_about_read(path)),
            ActKind::Connect { host } => find(&|it| it.is_about_host(host)),
            ActKind::Tool { name } => find(&|it| it.is_about_tool(name)),
        }
    }
}

/// A rule that allows a script, if all of it is allowed. One that is not plain never is: nobody knows what
/// else it does.
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
        // What a command runs that adds nothing to it stands in the script by itself.
        let is_listed = |start: usize| script.commands.iter().any(|it| it == &words[start..]);
        let is_seen_through = is_bare_shell(words)
            || wrapped_command(words).is_some_and(|it| it.neutral && is_listed(it.starts[0]));
        if known(words) || is_seen_through {
            continue;
        }
        let rule = rules.iter().find(|it| it.allows(words))?;
        deciding.get_or_insert(*rule);
    }
    deciding
}

/// Whether nothing can come of it, whatever it is about.
fn is_known(act: &ActKind, confinement: Isolation) -> bool {
    match act {
        ActKind::Command { script, .. } => {
            let commands = &script.commands;
            script.plain
                && !commands.is_empty()
                && commands.iter().all(|it| is_harmless(it, confinement))
        }
        // Whoever runs a tool sees the call before it does.
        ActKind::Read { .. } | ActKind::Tool { .. } => true,
        // A change that does not fit is only looked for.
        ActKind::Write { paths, reads, .. } => paths.is_empty() && !reads.is_empty(),
        ActKind::Connect { .. } => false,
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
        ActKind::Tool { name } => rule.is_about_tool(name),
    };
    if is_about {
        RuleMatch::Yes
    } else {
        RuleMatch::No
    }
}

/// What a yes for the session to a change of files is good for: the words on the screen are about files, and not
/// about what is written there. It ends with the sandbox it was given in.
fn files(act: &ActKind, settings: &Settings) -> Vec<String> {
    let ActKind::Write { paths, .. } = act else {
        return Vec::new();
    };
    let Settings {
        sandbox,
        cwd,
        roots,
        ..
    } = settings;
    let of_path = |path: &String| json!(["files", path, sandbox, cwd, roots]).to_string();
    paths.iter().map(of_path).collect()
}

fn goes_beyond(act: &ActKind, settings: &Settings) -> bool {
    match act {
        ActKind::Command { beyond, .. } | ActKind::Write { beyond, .. } => *beyond,
        ActKind::Connect { .. } => !network(&settings.sandbox),
        ActKind::Read { .. } | ActKind::Tool { .. } => false,
    }
}

/// Someone is asked, unless nobody is to be asked about this kind of question: then it is a no.
fn asked(ask: VerdictReason, settings: &Settings, kind: &str) -> VerdictReason {
    let may_ask = match &settings.approval {
        ApprovalPolicy::Untrusted | ApprovalPolicy::OnRequest => true,
        ApprovalPolicy::Never => false,
        ApprovalPolicy::Granular(kinds) => {
            let kinds = kinds.get("granular").unwrap_or(kinds);
            kinds.get(kind).and_then(serde_json::Value::as_bool) == Some(true)
        }
    };
    if may_ask {
        return ask;
    }
    VerdictReason {
        verdict: Verdict::Deny,
        reason: format!("{} Nobody is asked here.", ask.reason),
        ..ask
    }
}

fn by_rule(rule: &Rule, verdict: Verdict, why: &str) -> VerdictReason {
    verdict_reason(
        verdict,
        rule.reason.as_deref().unwrap_or(why),
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
