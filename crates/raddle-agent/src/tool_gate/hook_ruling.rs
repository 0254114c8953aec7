//! Rulings of hooks: they make the decision of the policy stricter, and never more permissive.

use std::collections::BTreeSet;

use raddle_core::policy::{Ruling, Verdict};
use raddle_core::ports::HookRuling;
use raddle_core::{
    Admission, ApprovalPolicy, Ask, AskCommand, AskPatch, AskTool, CommandSource, ItemBody,
    Settings, Timestamp, ToolCall,
};
use serde_json::Value;

use super::{Judgement, not_displayable};

/// Name of the hooks as the source of a ruling.
const RULE: &str = "hook";

impl Judgement {
    /// Makes a decision as strict as the hooks want it. `granted` holds the acts approved for the
    /// session; `expires_at` is the deadline of a request for approval.
    pub(crate) fn tightened(
        self,
        hooks: HookRuling,
        call: &ToolCall,
        settings: &Settings,
        granted: &BTreeSet<String>,
        expires_at: Option<Timestamp>,
    ) -> Self {
        match (hooks, &self.admission) {
            (HookRuling::Pass, _) | (_, Admission::Deny(_)) => self,
            (HookRuling::Deny(reason), _) => self.denied_by_hook(&reason),
            (HookRuling::Ask(reason), Admission::Run | Admission::Client) => {
                let digest = self.ruling.as_ref().map(|it| &it.digest);
                if digest.is_some_and(|it| granted.contains(it)) {
                    return self;
                }
                if !may_ask(&settings.approval) {
                    let why = format!("{reason} The approval policy forbids asking.");
                    return self.denied_by_hook(&why);
                }
                if let Some(why) = not_displayable(&self.body, call) {
                    let admission = Admission::Deny(why);
                    return Self { admission, ..self };
                }
                Self {
                    admission: Admission::Ask {
                        ask: question(&self.body, call, reason.clone()),
                        expires_at,
                    },
                    ruling: self.ruling.map(|it| by_hook(it, Verdict::Ask, &reason)),
                    approve_on_timeout: false,
                    ..self
                }
            }
            // The user is asked already, or the call only shows something to the user. Either way,
            // silence is no approval.
            (HookRuling::Ask(_), _) => Self {
                approve_on_timeout: false,
                ..self
            },
        }
    }

    fn denied_by_hook(self, reason: &str) -> Self {
        Self {
            admission: Admission::Deny(format!(
                "This was not done, because a hook of the user forbids it. {reason}"
            )),
            ruling: self.ruling.map(|it| by_hook(it, Verdict::Deny, reason)),
            approve_on_timeout: false,
            ..self
        }
    }
}

fn by_hook(ruling: Ruling, verdict: Verdict, reason: &str) -> Ruling {
    Ruling {
        verdict,
        reason: reason.to_owned(),
        rule: RULE.to_owned(),
        ..ruling
    }
}

/// Whether a hook may cause a request for approval, as a rule may.
fn may_ask(approval: &ApprovalPolicy) -> bool {
    match approval {
        ApprovalPolicy::Untrusted | ApprovalPolicy::OnRequest => true,
        ApprovalPolicy::Never => false,
        ApprovalPolicy::Granular(kinds) => {
            let kinds = kinds.get("granular").unwrap_or(kinds);
            kinds.get("rules").and_then(Value::as_bool) == Some(true)
        }
    }
}

/// Builds the request for approval of a call that the policy alone would allow.
fn question(body: &ItemBody, call: &ToolCall, reason: String) -> Ask {
    let reason = Some(reason);
    match body {
        // An approval of typed input must show the input, which is in the arguments.
        ItemBody::Command(it) if it.source != CommandSource::Typed => Ask::Command(AskCommand {
            command: it.command.clone(),
            cwd: it.cwd.clone(),
            reason,
            actions: it.actions.clone(),
            rule: Vec::new(),
        }),
        ItemBody::Patch(it) if !it.changes.is_empty() => {
            Ask::Patch(AskPatch { reason, root: None })
        }
        _ => Ask::Tool(AskTool {
            tool: call.tool.clone(),
            reason,
        }),
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::CommandRun;

    use super::*;

    fn call() -> ToolCall {
        ToolCall {
            id: "c".to_owned(),
            tool: "exec_command".to_owned(),
            arguments: r#"{"cmd":"ls"}"#.to_owned(),
            freeform: false,
            alone: false,
        }
    }

    #[test]
    fn a_hook_only_makes_a_decision_stricter() {
        let ruling = Ruling {
            verdict: Verdict::Allow,
            reason: "r".to_owned(),
            rule: "sandbox".to_owned(),
            digest: "d".to_owned(),
            files: Vec::new(),
        };
        let deny = || Admission::Deny("by the policy".to_owned());
        let (ask, refuse) = (
            HookRuling::Ask("w".to_owned()),
            HookRuling::Deny("w".to_owned()),
        );
        let granted = BTreeSet::from(["d".to_owned()]);
        for (admission, hooks, approval, granted, expected) in [
            (
                Admission::Run,
                HookRuling::Pass,
                ApprovalPolicy::OnRequest,
                None,
                "run",
            ),
            (
                Admission::Run,
                ask.clone(),
                ApprovalPolicy::OnRequest,
                None,
                "ask",
            ),
            (
                Admission::Run,
                ask.clone(),
                ApprovalPolicy::OnRequest,
                Some(&granted),
                "run",
            ),
            (
                Admission::Run,
                ask.clone(),
                ApprovalPolicy::Never,
                None,
                "deny",
            ),
            (
                Admission::Run,
                refuse.clone(),
                ApprovalPolicy::Never,
                None,
                "deny",
            ),
            (
                deny(),
                HookRuling::Pass,
                ApprovalPolicy::OnRequest,
                None,
                "deny",
            ),
            (deny(), ask, ApprovalPolicy::OnRequest, None, "deny"),
        ] {
            let judgement = Judgement {
                ruling: Some(ruling.clone()),
                ..Judgement::new(ItemBody::Command(CommandRun::default()), admission)
            };
            let settings = Settings {
                approval,
                ..Settings::default()
            };
            let none = BTreeSet::new();
            let granted = granted.unwrap_or(&none);
            let tightened = judgement.tightened(hooks.clone(), &call(), &settings, granted, None);
            let actual = match tightened.admission {
                Admission::Run => "run",
                Admission::Ask { .. } => "ask",
                Admission::Deny(_) => "deny",
                _ => "other",
            };
            assert_eq!(actual, expected, "{hooks:?}");
        }
    }

    /// A hook that asks wants an answer of the user, also where the policy asks anyway.
    #[test]
    fn a_timeout_approves_nothing_that_a_hook_asks_about() {
        let (body, settings) = (
            ItemBody::Command(CommandRun::default()),
            Settings::default(),
        );
        let call = call();
        for (hooks, expected) in [
            (HookRuling::Pass, true),
            (HookRuling::Ask("w".to_owned()), false),
        ] {
            let admission = Admission::Ask {
                ask: question(&body, &call, "by the policy".to_owned()),
                expires_at: None,
            };
            let judgement = Judgement {
                approve_on_timeout: true,
                ..Judgement::new(body.clone(), admission)
            };
            let none = BTreeSet::new();
            let tightened = judgement.tightened(hooks.clone(), &call, &settings, &none, None);
            assert_eq!(tightened.approve_on_timeout, expected, "{hooks:?}");
            assert!(matches!(tightened.admission, Admission::Ask { .. }));
        }
    }
}
