//! Questions of plugins about permissions that the calls of a former owner left open. A call that
//! asks the same waits for the answer, and without one the approval is stored for later calls.

use std::collections::BTreeMap;

use raddle_core::{Ask, AskElicitation, Event, RequestNumber, RequestResolved, Resolution, Thread};
use tokio::sync::oneshot;
use tracing::Instrument;

use super::Task;

/// The open questions that no call of this owner asked.
#[derive(Default)]
pub(super) struct LeftQuestions {
    open: BTreeMap<RequestNumber, LeftQuestion>,
    /// Approvals of this turn that came before a call asked the same. Each serves one call: it is
    /// stored too, and may be revoked later.
    approved: Vec<(AskElicitation, Resolution)>,
}

struct LeftQuestion {
    ask: AskElicitation,
    /// The call that waits for the answer; `None` if none does.
    reply: Option<oneshot::Sender<Resolution>>,
}

impl LeftQuestions {
    /// Adopts the questions of a thread whose owner died.
    pub(super) fn of(thread: &Thread) -> Self {
        let open = thread.requests().filter_map(|(request, it)| {
            it.ask.plugin_permission()?;
            let Ask::Elicitation(ask) = it.ask.clone() else {
                return None;
            };
            Some((request, LeftQuestion { ask, reply: None }))
        });
        Self {
            open: open.collect(),
            approved: Vec::new(),
        }
    }

    /// Lets a call wait for the answer to the question that it repeats, or gives it the approval that
    /// came before. Returns the reply if it repeats none, or another call waits already.
    pub(super) fn attach(
        &mut self,
        ask: &Ask,
        reply: oneshot::Sender<Resolution>,
    ) -> Option<oneshot::Sender<Resolution>> {
        let Ask::Elicitation(ask) = ask else {
            return Some(reply);
        };
        if let Some(at) = self.approved.iter().position(|(it, _)| it == ask) {
            let (_, approval) = self.approved.swap_remove(at);
            // The call may have ended.
            let _ = reply.send(approval);
            return None;
        }
        let has_waiter =
            |it: &LeftQuestion| it.reply.as_ref().is_some_and(|reply| !reply.is_closed());
        let mut open = self.open.values_mut();
        match open.find(|it| it.ask == *ask && !has_waiter(it)) {
            Some(left) => {
                left.reply = Some(reply);
                None
            }
            None => Some(reply),
        }
    }

    /// Passes the end of a request to the call that waits for it. Returns the question if none
    /// does.
    fn resolved(&mut self, it: &RequestResolved) -> Option<AskElicitation> {
        let LeftQuestion { ask, reply } = self.open.remove(&it.request)?;
        let is_delivered = reply.is_some_and(|reply| reply.send(it.resolution.clone()).is_ok());
        if is_delivered {
            return None;
        }
        if it.resolution.accepted_by().is_some() {
            self.approved.push((ask.clone(), it.resolution.clone()));
        }
        Some(ask)
    }
}

impl Task {
    /// Follows the questions, and stores an approval that no call waits for.
    pub(super) fn follow_left_questions(&mut self, event: &Event) {
        let it = match event {
            Event::RequestResolved(it) => it,
            Event::TurnEnded(_) => return self.left_questions.approved.clear(),
            _ => return,
        };
        let Some(ask) = self.left_questions.resolved(it) else {
            return;
        };
        let Some(by) = it.resolution.accepted_by() else {
            return;
        };
        let (thread, shared, by) = (self.id, self.shared.clone(), by.to_owned());
        let storing = async move {
            let plugin = ask.server.clone();
            match shared.plugins.approve(&ask, &by).await {
                Ok(()) => tracing::info!(%thread, by, plugin, "a permission was stored"),
                Err(error) => {
                    tracing::warn!(%thread, by, plugin, %error, "a permission was not stored");
                }
            }
        };
        tokio::spawn(storing.instrument(self.turn_log.span()));
    }
}
