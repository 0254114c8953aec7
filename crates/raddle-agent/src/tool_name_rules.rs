//! Rulings about tool calls by the names of the tools.

use std::collections::BTreeSet;

use raddle_core::policy::{Act, ActKind, Policy, Ruling, Verdict, approval_digest};
use raddle_core::{Admission, Ask, AskTool, Grant, ItemBody, Settings, Timestamp, ToolCall};
use serde_json::Value;

use crate::tool_gate::{Judgement, after, denied, not_displayable};

/// Judges a call, to which no other rule applies, by the rules about tool names.
pub(crate) fn judge(
    policy: &Policy,
    settings: &Settings,
    granted: &BTreeSet<String>,
    (call, names): (&ToolCall, &[String]),
    (body, admission): (ItemBody, Admission),
    now: Timestamp,
) -> Judgement {
    let name = name(call, &body);
    let names = match &body {
        ItemBody::ClientTool(_) => std::slice::from_ref(&name),
        _ => names,
    };
    let digest = approval_digest::tool_call(&name, &call.arguments);
    let ruling = ruling(policy, settings, granted, names, &digest);
    let admission = match (ruling.verdict, admission) {
        (_, admission @ Admission::Deny(_)) => return Judgement::new(body, admission),
        (Verdict::Deny, _) => denied(&ruling),
        (Verdict::Ask, Admission::Run | Admission::Client) => match not_displayable(&body, call) {
            Some(why) => Admission::Deny(why),
            None => Admission::Ask {
                ask: Ask::Tool(AskTool {
                    tool: name,
                    reason: Some(ruling.reason.clone()),
                }),
                expires_at: policy.unattended().after_ms().map(|ms| after(now, ms)),
            },
        },
        // A message to the user needs no approval.
        (Verdict::Ask, admission) | (Verdict::Allow, admission) => admission,
    };
    Judgement {
        ruling: Some(ruling),
        ..Judgement::new(body, admission)
    }
}

/// Rejects a request for permissions that the policy does not even allow to ask for.
pub(crate) fn judge_permissions(
    policy: &Policy,
    settings: &Settings,
    call: &ToolCall,
    (body, requested): (ItemBody, &Value),
) -> Option<Judgement> {
    let requested = Grant::of_wire(requested);
    let digest = approval_digest::tool_call(&call.tool, &call.arguments);
    let ruling = policy.judge_rights(&requested, settings, digest);
    (ruling.verdict == Verdict::Deny).then(|| Judgement {
        ruling: Some(ruling.clone()),
        ..Judgement::new(body, denied(&ruling))
    })
}

/// Returns the stricter ruling of the act and of the tool that performs it.
pub(crate) fn of_act(
    policy: &Policy,
    settings: &Settings,
    granted: &BTreeSet<String>,
    names: &[String],
    act: &Act,
) -> Ruling {
    let of_act = policy.judge(act, settings, granted);
    let of_name = ruling(policy, settings, granted, names, &act.digest);
    match of_name.verdict > of_act.verdict {
        true => of_name,
        false => of_act,
    }
}

/// Returns the ruling on a call that is known by its tool's name only, and the digest that an
/// approval covers.
pub(crate) fn of_call(
    policy: &Policy,
    settings: &Settings,
    granted: &BTreeSet<String>,
    (call, names): (&ToolCall, &[String]),
) -> (Ruling, String) {
    let digest = approval_digest::tool_call(&call.tool, &call.arguments);
    let ruling = ruling(policy, settings, granted, names, &digest);
    (ruling, digest)
}

/// Returns the strictest ruling of a call's names. The digest is that of its act.
fn ruling(
    policy: &Policy,
    settings: &Settings,
    granted: &BTreeSet<String>,
    names: &[String],
    digest: &str,
) -> Ruling {
    let of_name = |name: &str| {
        let act = Act {
            kind: ActKind::Tool {
                name: name.to_owned(),
            },
            digest: digest.to_owned(),
            reason: None,
        };
        policy.judge(&act, settings, granted)
    };
    let (first, others) = match names.split_first() {
        Some((first, others)) => (first.as_str(), others),
        None => ("", &[][..]),
    };
    others.iter().fold(of_name(first), |strictest, name| {
        let it = of_name(name);
        match it.verdict > strictest.verdict {
            true => it,
            false => strictest,
        }
    })
}

/// The name that rules use for a tool.
fn name(call: &ToolCall, body: &ItemBody) -> String {
    match body {
        ItemBody::ClientTool(it) => match &it.namespace {
            Some(group) => format!("{group}.{}", it.tool),
            None => it.tool.clone(),
        },
        _ => call.tool.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raddle_core::NamedTool;
    use raddle_core::policy::{Layer, Rule, Subject};

    use super::*;
    use crate::tool_gate::ToolGate;
    use crate::{FixedRules, NoTools, NoWebhook};

    /// A tool that is neither a client's nor a built-in one has a name too.
    #[tokio::test]
    async fn a_rule_about_any_name_counts() {
        let rule = Rule {
            layer: Layer::User,
            subject: Subject::Tool("update_goal".to_owned()),
            verdict: Verdict::Deny,
            beyond: false,
            reason: None,
        };
        let policy = Policy {
            rules: vec![rule],
            ..Policy::default()
        };
        let gate = ToolGate {
            tools: Arc::new(NoTools),
            rules: Arc::new(FixedRules(Arc::new(policy))),
            webhook: Arc::new(NoWebhook),
            hooks: Arc::new(raddle_core::ports::NoHooks),
        };
        for (tool, is_denied) in [("update_goal", true), ("other", false)] {
            let call = ToolCall {
                id: "c".to_owned(),
                tool: tool.to_owned(),
                arguments: "{}".to_owned(),
                freeform: false,
                alone: false,
            };
            let name = tool.to_owned();
            let intent = (ItemBody::Tool(NamedTool { name }), Admission::Run);
            let (settings, granted) = (Settings::default(), BTreeSet::new());
            let now = Timestamp::default();
            let judgement = gate.judge_others(&settings, &granted, &call, intent, now);
            let admission = judgement.await.admission;
            assert_eq!(matches!(admission, Admission::Deny(_)), is_denied, "{tool}");
        }
    }

    /// An approval shows all arguments of a call, so overlong arguments are denied without asking.
    #[tokio::test]
    async fn overlong_arguments_are_denied_without_asking() {
        let rule = Rule {
            layer: Layer::User,
            subject: Subject::Tool("mail".to_owned()),
            verdict: Verdict::Ask,
            beyond: false,
            reason: None,
        };
        let policy = Policy {
            rules: vec![rule],
            ..Policy::default()
        };
        for (bytes, is_asked) in [(200 << 10, true), (300 << 10, false)] {
            let call = ToolCall {
                id: "c".to_owned(),
                tool: "mail".to_owned(),
                arguments: "a".repeat(bytes),
                freeform: false,
                alone: false,
            };
            let name = "mail".to_owned();
            let intent = (ItemBody::Tool(NamedTool { name }), Admission::Run);
            let (settings, granted) = (Settings::default(), BTreeSet::new());
            let call_and_names = (&call, std::slice::from_ref(&call.tool));
            let now = Timestamp::default();
            let judgement = judge(&policy, &settings, &granted, call_and_names, intent, now);
            let asks = matches!(judgement.admission, Admission::Ask { .. });
            assert_eq!(asks, is_asked, "{bytes} bytes");
        }
    }
}
