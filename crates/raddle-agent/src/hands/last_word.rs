//! The last word on a call: it is judged once more, just before it is carried out.
//!
//! What was said when the model made it may be long ago: an answer was waited for, rules were added, settings
//! changed, another call wrote the file. Only a yes stays, and it is good for what it was given for.

use std::collections::BTreeSet;

use raddle_core::policy::{Ruling, Verdict};
use raddle_core::ports::{Job, Leave, Meant, Ran};
use raddle_core::{Call, Grant, ItemStatus, Output, Settings, ThreadId};

use super::{Hands, UNRULED, forbidden};
use crate::named;

/// What the model is told of an act that is not the one that has a yes.
const ANOTHER: &str = "This was not done: what it would do, or where, is no longer what was allowed. Look again, \
                       and call again.";

/// What people said yes to, acts each by its digest.
pub(crate) struct Yes {
    /// When they were asked about this call.
    pub(crate) once: Option<String>,
    /// For the session.
    pub(crate) session: BTreeSet<String>,
    /// The rights beyond the fence that they gave.
    pub(crate) rights: Grant,
}

impl Yes {
    /// Whether they said it to the act with this digest.
    fn holds(&self, digest: &str) -> bool {
        self.once.as_deref() == Some(digest) || self.session.contains(digest)
    }
}

/// Why a call is not carried out, and what its item comes to.
struct No {
    status: ItemStatus,
    why: String,
}

impl No {
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

impl Hands {
    /// Carries out a job that nobody's leave was asked for so far, or says why not.
    pub(super) async fn run(&self, mut job: Job, yes: Yes) -> Ran {
        job.settings = self.widened(&job.settings, &yes.rights).await;
        // What the user runs is nobody else's business.
        let Some(call) = job.item.call.clone() else {
            return self.tools.run(job).await;
        };
        let (thread, settings) = (job.thread, job.settings.clone());
        match self.leave(thread, &settings, &call, &yes).await {
            Ok(leave) => {
                job.leave = leave;
                self.tools.run(job).await
            }
            Err(No { status, why }) => {
                tracing::info!(%thread, item = %job.item.id, why, "a call was not carried out");
                Ran::new(status, job.item.body, Output::failure(why))
            }
        }
    }

    /// What a call may do now, where that needs anyone's leave; or what the model is told instead.
    async fn leave(
        &self,
        thread: ThreadId,
        settings: &Settings,
        call: &Call,
        yes: &Yes,
    ) -> Result<Option<Leave>, No> {
        let meant = match settings.nowhere {
            true => None,
            false => self.tools.meant(thread, settings, call).await,
        };
        let Some(policy) = self.policy().await else {
            return Err(No::may_not(UNRULED.to_owned()));
        };
        let names = self.tools.names(settings, call);
        match meant.map(|(_, meant)| meant) {
            Some(Meant::Act(act)) => {
                let ruling = named::of_act(&policy, settings, &yes.session, &names, &act);
                may(&ruling, &act.digest, yes).map_err(No::may_not)?;
                Ok(Some(match yes.holds(&act.digest) {
                    true => Leave::Exactly(act.digest),
                    false => Leave::Kind(act.kind),
                }))
            }
            Some(Meant::Harmless) => {
                let (ruling, digest) =
                    named::of_call(&policy, settings, &yes.session, (call, &names));
                may(&ruling, &digest, yes).map_err(No::may_not)?;
                Ok(None)
            }
            Some(Meant::Refused(why)) => Err(No::cannot(why)),
            Some(Meant::Ask(_) | Meant::Plan { .. }) => Ok(None),
            None => {
                let why = format!("There is no tool named {}.", call.tool);
                Err(No::cannot(why))
            }
        }
    }
}

/// Policy goes first: no yes is good against a rule that denies. What policy would have someone asked about
/// needs the yes that was given to it.
fn may(ruling: &Ruling, digest: &str, yes: &Yes) -> Result<(), String> {
    match ruling.verdict {
        Verdict::Deny => Err(forbidden(ruling)),
        Verdict::Allow => Ok(()),
        Verdict::Ask if yes.holds(digest) => Ok(()),
        Verdict::Ask if yes.once.is_some() => Err(ANOTHER.to_owned()),
        Verdict::Ask => Err(format!(
            "This was not done: by now someone must say yes to it ({}). {} Call again, and they are asked.",
            ruling.rule, ruling.reason
        )),
    }
}
