//! A tool call of the model. The tool starts only later, once the model call has ended well and any
//! approval is given.

use super::{Decision, Thread, closing, item_text, manage, set_goal};
use crate::{
    Admission, Ask, CallTool, Event, Gate, ItemStarted, ItemStatus, Output, RecordBody, Refusal,
    RequestOpened, Timestamp,
};

pub(super) fn decide(thread: &Thread, it: CallTool, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = item_text::turn_of_call(thread, it.call)?;
    if thread.open_item(&it.item).is_some() {
        return Err(Refusal::ItemExists);
    }
    let mut item = item_text::new_item(it.item, it.body, now);
    item.call = Some(it.tool_call);
    let gate = match &it.admission {
        Admission::Run | Admission::Deny(_) | Admission::Goal(_) | Admission::Plan(_) => Gate::Open,
        Admission::Ask { ask, .. } => gate_of(ask),
        Admission::Client => Gate::Answer,
    };
    let mut bodies: Vec<RecordBody> = vec![
        Event::ItemStarted(ItemStarted {
            turn: turn.id.clone(),
            item: item.clone(),
            gate: Some(gate),
            ruling: it.ruling.clone(),
        })
        .into(),
    ];
    match it.admission {
        Admission::Run | Admission::Client => {}
        Admission::Ask { ask, expires_at } => {
            let (digest, files) = match it.ruling {
                Some(ruling) => (Some(ruling.digest), ruling.files),
                None => (None, Vec::new()),
            };
            let opened = RequestOpened {
                request: thread.next_request,
                turn: turn.id.clone(),
                item: item.id,
                ask,
                expires_at,
                digest,
                files,
                approve_on_timeout: it.approve_on_timeout,
            };
            bodies.push(Event::RequestOpened(opened).into());
        }
        Admission::Plan(plan) => {
            bodies.extend(manage::update_plan(thread, plan)?.bodies);
            item.status = ItemStatus::Completed;
            item.completed_at = Some(now);
            item.output = Some(Output::text("Plan updated"));
            bodies.push(closing::completed(turn, item));
        }
        Admission::Goal(status) => {
            let set = set_goal::report_status(thread, status);
            item.status = match set {
                Some(_) => ItemStatus::Completed,
                None => ItemStatus::Failed,
            };
            item.output = Some(match set {
                Some(_) => {
                    Output::text("Noted. Say briefly how things stand, and end your answer.")
                }
                None => Output::failure("This thread has no active goal."),
            });
            item.completed_at = Some(now);
            bodies.extend(set);
            bodies.push(closing::completed(turn, item));
        }
        Admission::Deny(_) if crate::bugs::planted(crate::bugs::Bug::DeniedRuns) => {}
        Admission::Deny(reason) => {
            item.status = ItemStatus::Declined;
            item.completed_at = Some(now);
            item.output = Some(Output::failure(reason));
            bodies.push(closing::completed(turn, item));
        }
    }
    Ok(bodies.into())
}

/// An approval lets a tool start; any other answer is the tool's whole output.
fn gate_of(ask: &Ask) -> Gate {
    match ask {
        Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) => Gate::Approval,
        Ask::Permissions(_) | Ask::Questions(_) | Ask::ClientTool {} | Ask::Elicitation(_) => {
            Gate::Answer
        }
    }
}
