//! The second judgement of a call, just before it runs.
//!
//! The first may be outdated: the call waited for an answer, rules were added, settings changed,
//! another call wrote the file. Only an approval stays valid, for exactly the act that it was given
//! for.

use std::collections::BTreeSet;

use raddle_core::policy::{Ruling, Verdict};
use raddle_core::ports::{Authorization, ToolIntent, ToolJob, ToolResult};
use raddle_core::{Grant, ItemStatus, Output, Settings, ThreadId, ToolCall};

use super::{NO_RULES, ToolGate, forbidden};
use crate::tool_name_rules;

/// Output for the model if an act differs from the approved one.
const NOT_APPROVED: &str = "This was not done: what it would do, or where, is no longer what was allowed. Look again, \
                       and call again.";

/// Approvals of acts, each by its digest.
pub(crate) struct Approvals {
    /// The approval of this very call.
    pub(crate) once: Option<String>,
    /// Approvals for the session.
    pub(crate) session: BTreeSet<String>,
    /// Granted permissions beyond the sandbox.
    pub(crate) rights: Grant,
}

impl Approvals {
    /// Whether the act with this digest is approved.
    fn holds(&self, digest: &str) -> bool {
        self.once.as_deref() == Some(digest) || self.session.contains(digest)
    }
}

/// Reason why a call does not run, and the status of its item.
struct Rejection {
    status: ItemStatus,
    why: String,
}

impl Rejection {
    /// The call is not allowed.
    fn not_allowed(why: String) -> Self {
        let status = ItemStatus::Declined;
        Self { status, why }
    }

    /// The call is impossible.
    fn impossible(why: String) -> Self {
        let status = ItemStatus::Failed;
        Self { status, why }
    }
}

impl ToolGate {
    /// Rechecks a job and runs it, or returns the reason of the rejection.
    pub(super) async fn run(&self, mut job: ToolJob, approvals: Approvals) -> ToolResult {
        job.settings = self.widened(&job.settings, &approvals.rights).await;
        // Commands of the user need no approval.
        let Some(call) = job.item.call.clone() else {
            return self.tools.run(job).await;
        };
        let (thread, settings) = (job.thread, job.settings.clone());
        match self
            .authorization(thread, &settings, &call, &approvals)
            .await
        {
            // The user chose among the hunks of one act. Another act may have others, even if it needs
            // no approval.
            Ok(authorization)
                if !job.hunks.is_empty()
                    && !matches!(authorization, Some(Authorization::Exactly(_))) =>
            {
                let output = Output::failure(NOT_APPROVED);
                ToolResult::new(ItemStatus::Declined, job.item.body, output)
            }
            Ok(authorization) => {
                job.authorization = authorization;
                self.tools.run(job).await
            }
            Err(Rejection { status, why }) => {
                tracing::info!(why, "a tool call was rejected");
                ToolResult::new(status, job.item.body, Output::failure(why))
            }
        }
    }

    /// Returns what the call is now authorized to do; `None` if it needs no authorization. Fails
    /// with the reason for the model.
    async fn authorization(
        &self,
        thread: ThreadId,
        settings: &Settings,
        call: &ToolCall,
        approvals: &Approvals,
    ) -> Result<Option<Authorization>, Rejection> {
        let intent = match settings.no_environment {
            true => None,
            false => self.tools.intent(thread, settings, call).await,
        };
        let Some(policy) = self.policy().await else {
            return Err(Rejection::not_allowed(NO_RULES.to_owned()));
        };
        let names = self.tools.names(settings, call);
        match intent.map(|(_, intent)| intent) {
            Some(ToolIntent::Act(act)) => {
                let ruling =
                    tool_name_rules::of_act(&policy, settings, &approvals.session, &names, &act);
                check_ruling(&ruling, &act.digest, approvals).map_err(Rejection::not_allowed)?;
                Ok(Some(match approvals.holds(&act.digest) {
                    true => Authorization::Exactly(act.digest),
                    false => Authorization::Kind(act.kind),
                }))
            }
            Some(ToolIntent::Harmless) => {
                let call_and_names = (call, names.as_slice());
                let (ruling, digest) =
                    tool_name_rules::of_call(&policy, settings, &approvals.session, call_and_names);
                check_ruling(&ruling, &digest, approvals).map_err(Rejection::not_allowed)?;
                Ok(None)
            }
            Some(ToolIntent::Refused(why)) => Err(Rejection::impossible(why)),
            Some(ToolIntent::Ask(_) | ToolIntent::Plan { .. }) => Ok(None),
            None => {
                let why = format!("There is no tool named {}.", call.tool);
                Err(Rejection::impossible(why))
            }
        }
    }
}

/// Checks a ruling. A denial overrides every approval. A verdict to ask requires an approval with
/// this digest.
fn check_ruling(ruling: &Ruling, digest: &str, approvals: &Approvals) -> Result<(), String> {
    match ruling.verdict {
        Verdict::Deny => Err(forbidden(ruling)),
        Verdict::Allow => Ok(()),
        Verdict::Ask if approvals.holds(digest) => Ok(()),
        Verdict::Ask if approvals.once.is_some() => Err(NOT_APPROVED.to_owned()),
        Verdict::Ask => Err(format!(
            "This was not done: it now needs an approval ({}). {} Call it again to request one.",
            ruling.rule, ruling.reason
        )),
    }
}
