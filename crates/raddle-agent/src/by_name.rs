//! Calls judged by the names of their tools.

use std::collections::BTreeSet;
use std::fmt::Write;

use raddle_core::policy::{Act, ActKind, Policy, Ruling, Verdict};
use raddle_core::{Admission, Ask, AskTool, Grant, ItemBody, Settings, Timestamp, ToolCall};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::tool_gate::{Judgement, after, denied, unshown};

/// What the rules about tools by their names say of a call that nothing else is said of.
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
    let ruling = ruling(policy, settings, granted, names, &digest(&name, call));
    let admission = match (ruling.verdict, admission) {
        (_, admission @ Admission::Deny(_)) => return Judgement::new(body, admission),
        (Verdict::Deny, _) => denied(&ruling),
        (Verdict::Ask, Admission::Run | Admission::Client) => match unshown(&body, call) {
            Some(why) => Admission::Deny(why),
            None => Admission::Ask {
                ask: Ask::Tool(AskTool {
                    tool: name,
                    reason: Some(ruling.reason.clone()),
                }),
                expires_at: policy.unattended().after_ms().map(|ms| after(now, ms)),
            },
        },
        // A word to the user is not asked about first.
        (Verdict::Ask, admission) | (Verdict::Allow, admission) => admission,
    };
    Judgement {
        ruling: Some(ruling),
        ..Judgement::new(body, admission)
    }
}

/// What becomes of a wish for rights that may not even be asked for.
pub(crate) fn rights(
    policy: &Policy,
    settings: &Settings,
    call: &ToolCall,
    (body, wanted): (ItemBody, &Value),
) -> Option<Judgement> {
    let wanted = Grant::of_wire(wanted);
    let ruling = policy.judge_rights(&wanted, settings, digest(&call.tool, call));
    (ruling.verdict == Verdict::Deny).then(|| Judgement {
        ruling: Some(ruling.clone()),
        ..Judgement::new(body, denied(&ruling))
    })
}

/// What is said of an act and of the tool that would do it, whichever is stricter.
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

/// What is said of a call that is nothing but its tool's name, and what a yes to it is good for.
pub(crate) fn of_call(
    policy: &Policy,
    settings: &Settings,
    granted: &BTreeSet<String>,
    (call, names): (&ToolCall, &[String]),
) -> (Ruling, String) {
    let digest = digest(&call.tool, call);
    let ruling = ruling(policy, settings, granted, names, &digest);
    (ruling, digest)
}

/// What they say of a call whose act has this digest, by whichever of its names is the strictest.
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
            why: None,
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

/// The name by which rules know a tool.
fn name(call: &ToolCall, body: &ItemBody) -> String {
    match body {
        ItemBody::ClientTool(it) => match &it.namespace {
            Some(group) => format!("{group}.{}", it.tool),
            None => it.tool.clone(),
        },
        _ => call.tool.clone(),
    }
}

/// A yes is good for the same words only.
fn digest(name: &str, call: &ToolCall) -> String {
    let hash = Sha256::new()
        .chain_update("tool\0")
        .chain_update(name)
        .chain_update("\0")
        .chain_update(&call.arguments)
        .finalize();
    hash.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use raddle_core::NamedTool;
    use raddle_core::policy::{Layer, Rule, Subject};

    use super::*;
    use crate::tool_gate::ToolGate;
    use crate::{FixedRules, NoTools, NoWebhook};

    /// What is neither a client's tool nor one of the agent's hands has a name too.
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
        let hands = ToolGate {
            tools: Arc::new(NoTools),
            rules: Arc::new(FixedRules(Arc::new(policy))),
            webhook: Arc::new(NoWebhook),
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
            let meant = (ItemBody::Tool(NamedTool { name }), Admission::Run);
            let (settings, granted) = (Settings::default(), BTreeSet::new());
            let now = Timestamp::default();
            let judged = hands.judge_others(&settings, &granted, &call, meant, now);
            let admission = judged.await.admission;
            assert_eq!(matches!(admission, Admission::Deny(_)), is_denied, "{tool}");
        }
    }

    /// The question shows all of a call's arguments, so there is none about arguments that are too long.
    #[tokio::test]
    async fn nobody_is_asked_about_what_cannot_be_shown() {
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
            let meant = (ItemBody::Tool(NamedTool { name }), Admission::Run);
            let (settings, granted) = (Settings::default(), BTreeSet::new());
            let known = (&call, std::slice::from_ref(&call.tool));
            let now = Timestamp::default();
            let judged = judge(&policy, &settings, &granted, known, meant, now);
            let found = matches!(judged.admission, Admission::Ask { .. });
            assert_eq!(found, is_asked, "{bytes} bytes");
        }
    }
}
