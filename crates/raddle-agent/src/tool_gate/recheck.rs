//! The last word on a call: it is judged once more, just before it is carried out.
//!
//! What was said when the model made it may be long ago: an answer was waited for, rules were added, settings
//! changed, another call wrote the file. Only a yes stays, and it is good for what it was given for.

use std::collections::BTreeSet;

use raddle_core::policy::{Ruling, Verdict};
use raddle_core::ports::{Authorization, ToolIntent, ToolJob, ToolResult};
use raddle_core::{Grant, ItemStatus, Output, Settings, ThreadId, ToolCall};

use super::{NO_RULES, ToolGate, forbidden};
use crate::by_name;

/// What the model is told of an act that is not the one that has a yes.
const NOT_APPROVED: &str = "This was not done: what it would do, or where, is no longer what was allowed. Look again, \
                       and call again.";

/// What people said yes to, acts each by its digest.
pub(crate) struct Approvals {
    /// When they were asked about this call.
    pub(crate) once: Option<String>,
    /// For the session.
    pub(crate) session: BTreeSet<String>,
    /// The rights beyond the fence that they gave.
    pub(crate) rights: Grant,
}

impl Approvals {
    /// Whether they said it to the act with this digest.
    fn holds(&self, digest: &str) -> bool {
        self.once.as_deref() == Some(digest) || self.session.contains(digest)
    }
}

/// Why a call is not carried out, and what its item comes to.
struct Rejection {
    status: ItemStatus,
    why: String,
}

impl Rejection {
    /// It may not be.
    fn may_not(why: String) -> Self {
        let status = ItemStatus::Declined;
        Self { status, why }
    }

    /// It cannot be.
    fn cannot(why: String) -> Self {
        let status = ItemStatus::Failed;
        Self { status, why }
    }
}

impl ToolGate {
    /// Carries out a job that nobody's leave was asked for so far, or says why not.
    pub(super) async fn run(&self, mut job: ToolJob, yes: Approvals) -> ToolResult {
        job.settings = self.widened(&job.settings, &yes.rights).await;
        // What the user runs is nobody else's business.
        let Some(call) = job.item.call.clone() else {
            return self.tools.run(job).await;
        };
        let (thread, settings) = (job.thread, job.settings.clone());
        match self.authorization(thread, &settings, &call, &yes).await {
            Ok(leave) => {
                job.authorization = leave;
                self.tools.run(job).await
            }
            Err(Rejection { status, why }) => {
                tracing::info!(%thread, item = %job.item.id, why, "a call was not carried out");
                ToolResult::new(status, job.item.body, Output::failure(why))
            }
        }
    }

    /// What a call may do now, where that needs anyone's leave; or what the model is told instead.
    async fn authorization(
        &self,
        thread: ThreadId,
        settings: &Settings,
        call: &ToolCall,
        yes: &Approvals,
    ) -> Result<Option<Authorization>, Rejection> {
        let meant = match settings.no_environment {
            true => None,
            false => self.tools.intent(thread, settings, call).await,
        };
        let Some(policy) = self.policy().await else {
            return Err(Rejection::may_not(NO_RULES.to_owned()));
        };
        let names = self.tools.names(settings, call);
        match meant.map(|(_, meant)| meant) {
            Some(ToolIntent::Act(act)) => {
                let ruling = by_name::of_act(&policy, settings, &yes.session, &names, &act);
                may(&ruling, &act.digest, yes).map_err(Rejection::may_not)?;
                Ok(Some(match yes.holds(&act.digest) {
                    true => Authorization::Exactly(act.digest),
                    false => Authorization::Kind(act.kind),
                }))
            }
            Some(ToolIntent::Harmless) => {
                let (ruling, digest) =
                    by_name::of_call(&policy, settings, &yes.session, (call, &names));
                may(&ruling, &digest, yes).map_err(Rejection::may_not)?;
                Ok(None)
            }
            Some(ToolIntent::Refused(why)) => Err(Rejection::cannot(why)),
            Some(ToolIntent::Ask(_) | ToolIntent::Plan { .. }) => Ok(None),
            None => {
                let why = format!("There is no tool named {}.", call.tool);
                Err(Rejection::cannot(why))
            }
        }
    }
}

/// Policy goes first: no yes is good against a rule that denies. What policy would have someone asked about
/// needs the yes that was given to it.
fn may(ruling: &Ruling, digest: &str, yes: &Approvals) -> Result<(), String> {
    match ruling.verdict {
        Verdict::Deny => Err(forbidden(ruling)),
        Verdict::Allow => Ok(()),
        Verdict::Ask if yes.holds(digest) => Ok(()),
        Verdict::Ask if yes.once.is_some() => Err(NOT_APPROVED.to_owned()),
        Verdict::Ask => Err(format!(
            "This was not done: by now someone must say yes to it ({}). {} Call again, and they are asked.",
            ruling.rule, ruling.reason
        )),
    }
}
