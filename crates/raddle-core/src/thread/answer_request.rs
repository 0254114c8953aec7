//! Answers to requests: the first answer counts, and later ones are refused.

use super::state::OpenRequest;
use super::{Decision, OpenItem, OpenTurn, Thread, closing};
use crate::hunks::check_decisions;
use crate::{
    AnswerRequest, Ask, Cause, Event, Gate, Grant, HunkDecision, ItemBody, ItemStatus, Output,
    ProposedHunk, RecordBody, Refusal, RequestAnswer, RequestNumber, RequestResolved, Resolution,
    Timestamp, proposed_hunks, report_of_decisions,
};

/// Output for the model if its request for rights got none.
const NOTHING_GRANTED: &str =
    "The user granted none of these permissions. Find another way, or ask the user.";

/// Output for the model if the user declined its call.
const DECLINED: &str = "The user declined this call. Nothing was done.";

pub(super) fn decide(
    thread: &Thread,
    it: AnswerRequest,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let Some(open) = thread.requests.get(&it.request) else {
        return repeated_answer(thread, it);
    };
    if !fits(&open.ask, &it.answer) {
        return Err(Refusal::WrongAnswer);
    }
    let answer = match it.answer {
        RequestAnswer::AcceptHunks { hunks } => checked_hunks(thread, open, hunks),
        answer => answer,
    };
    let resolution = Resolution::Answered {
        by: it.by,
        answer: Box::new(answer),
    };
    Ok(settle(thread, it.request, open, resolution, now).into())
}

/// Returns the answer with these decisions, or that it failed if they are not about the hunks of the
/// request. A client gets no error for a response, and the turn must not wait for another one.
fn checked_hunks(thread: &Thread, open: &OpenRequest, hunks: Vec<HunkDecision>) -> RequestAnswer {
    let proposed = hunks_of(thread, open);
    match check_decisions(&proposed, &hunks) {
        Ok(()) => RequestAnswer::AcceptHunks { hunks },
        Err(error) => RequestAnswer::Failed {
            message: error.to_string(),
        },
    }
}

/// Returns the hunks that the user may choose among; none if the request is about anything but a
/// proposed change.
pub(crate) fn hunks_of(thread: &Thread, open: &OpenRequest) -> Vec<ProposedHunk> {
    match thread.open_item(&open.item) {
        Some(item) if !item.started => hunks_of_item(thread, item),
        _ => Vec::new(),
    }
}

/// Returns the hunks of an item that proposes a change.
fn hunks_of_item(thread: &Thread, item: &OpenItem) -> Vec<ProposedHunk> {
    match &item.item.body {
        ItemBody::Patch(patch) => proposed_hunks(item.hunk_cwd(&thread.settings), &patch.changes),
        _ => Vec::new(),
    }
}

fn repeated_answer(thread: &Thread, it: AnswerRequest) -> Result<Decision, Refusal> {
    if it.request >= thread.next_request {
        return Err(Refusal::NoRequest);
    }
    let settled = thread.settled.iter().find(|old| old.request == it.request);
    if crate::bugs::planted(crate::bugs::Bug::DoubleAnswer) {
        let resolution = Resolution::Answered {
            by: it.by,
            answer: Box::new(it.answer),
        };
        return Ok(vec![resolved(it.request, resolution, None)].into());
    }
    Err(Refusal::AlreadyResolved {
        how: settled.map(|old| old.how.clone()),
    })
}

/// Resolves a request and returns the records that follow for its item.
pub(super) fn settle(
    thread: &Thread,
    request: RequestNumber,
    open: &OpenRequest,
    resolution: Resolution,
    now: Timestamp,
) -> Vec<RecordBody> {
    let grant = granted_rights(open, &resolution);
    let mut bodies = vec![resolved(request, resolution.clone(), grant.clone())];
    let Some(turn) = &thread.turn else {
        return bodies;
    };
    let Some(item) = thread.open_item(&open.item) else {
        return bodies;
    };
    match item.gate {
        // A running tool handles the answer itself.
        _ if item.started => {}
        // A client that runs a tool got its request after the approval.
        Some(Gate::Approval) if open.ask != (Ask::ClientTool {}) => {
            bodies.extend(decline(thread, turn, item, &resolution, now));
        }
        Some(Gate::Approval | Gate::Answer) => {
            bodies.push(completed_with_answer(turn, item, open, &resolution, now));
        }
        Some(Gate::Open) | None => {}
    }
    let cancelled_by = match resolution {
        Resolution::Answered { by, answer } if *answer == (RequestAnswer::Cancel {}) => Some(by),
        Resolution::Answered { .. } | Resolution::Expired {} | Resolution::Withdrawn {} => None,
    };
    if cancelled_by.is_some() && turn.stopping.is_none() {
        let cause = Cause::Cancelled {
            principal: cancelled_by,
        };
        let rest = closing::stop(thread, turn, cause, Some(&item.item.id), now);
        bodies.extend(rest);
    }
    bodies
}

/// Ends the item if the approval was declined; an approval only makes the item ready.
fn decline(
    thread: &Thread,
    turn: &OpenTurn,
    item: &OpenItem,
    resolution: &Resolution,
    now: Timestamp,
) -> Option<RecordBody> {
    let (status, text) = match resolution {
        Resolution::Answered { answer, .. } => match &**answer {
            answer if answer.approves() => return None,
            RequestAnswer::AcceptHunks { hunks } => {
                (ItemStatus::Declined, all_hunks_dropped(thread, item, hunks))
            }
            RequestAnswer::Failed { message: reason } => (
                ItemStatus::Failed,
                format!("The request for approval failed: {reason}"),
            ),
            RequestAnswer::Accept {}
            | RequestAnswer::AcceptForSession {}
            | RequestAnswer::AcceptWithRule { .. }
            | RequestAnswer::Decline {}
            | RequestAnswer::Cancel {}
            | RequestAnswer::Permissions { .. }
            | RequestAnswer::Answers { .. }
            | RequestAnswer::Tool { .. }
            | RequestAnswer::Elicitation { .. } => (ItemStatus::Declined, DECLINED.to_owned()),
        },
        Resolution::Expired {} => (
            ItemStatus::Declined,
            "The request for approval timed out, so this was not run.".to_owned(),
        ),
        Resolution::Withdrawn {} => return None,
    };
    let output = Output::failure(text);
    Some(closing::tool_ended(turn, item, status, output, now))
}

/// Returns the output for the model if the user dropped all hunks.
fn all_hunks_dropped(thread: &Thread, item: &OpenItem, decisions: &[HunkDecision]) -> String {
    let ItemBody::Patch(patch) = &item.item.body else {
        return DECLINED.to_owned();
    };
    let hunks = hunks_of_item(thread, item);
    let report = report_of_decisions(&patch.changes, &hunks, decisions);
    format!("{DECLINED}\n\n{report}")
}

/// Completes an item whose output is the answer.
fn completed_with_answer(
    turn: &OpenTurn,
    item: &OpenItem,
    open: &OpenRequest,
    resolution: &Resolution,
    now: Timestamp,
) -> RecordBody {
    let (status, output) = match resolution {
        Resolution::Answered { answer, .. } => match &**answer {
            RequestAnswer::Tool { output, .. } if output.failed => {
                (ItemStatus::Failed, output.clone())
            }
            RequestAnswer::Tool { output, .. } => (ItemStatus::Completed, output.clone()),
            RequestAnswer::Answers { answers } => {
                (ItemStatus::Completed, Output::text(as_json(answers)))
            }
            RequestAnswer::Permissions { .. } => match granted_rights(open, resolution) {
                Some(grant) => (ItemStatus::Completed, Output::text(grant_json(&grant))),
                None => (ItemStatus::Declined, Output::failure(NOTHING_GRANTED)),
            },
            RequestAnswer::Elicitation { body } => {
                (ItemStatus::Completed, Output::text(body.to_string()))
            }
            RequestAnswer::Failed { message: reason } => (
                ItemStatus::Failed,
                Output::failure(format!("The request failed: {reason}")),
            ),
            RequestAnswer::Accept {}
            | RequestAnswer::AcceptForSession {}
            | RequestAnswer::AcceptWithRule { .. }
            | RequestAnswer::AcceptHunks { .. } => (ItemStatus::Completed, Output::text("Yes.")),
            RequestAnswer::Decline {} | RequestAnswer::Cancel {} => (
                ItemStatus::Declined,
                Output::failure("The user declined to answer."),
            ),
        },
        Resolution::Expired {} | Resolution::Withdrawn {} => (
            ItemStatus::Failed,
            Output::failure("The request timed out."),
        ),
    };
    let mut last = item.last_form(status, now);
    last.output = Some(output);
    if let ItemBody::ClientTool(tool) = &mut last.body {
        tool.duration_ms = Some(now.since(open.opened_at));
        if let Resolution::Answered { answer, .. } = resolution
            && let RequestAnswer::Tool { content, .. } = &**answer
        {
            tool.content = Some(content.clone());
        }
    }
    closing::completed(turn, last)
}

/// Returns the granted rights, if the answer grants any of those requested.
fn granted_rights(open: &OpenRequest, resolution: &Resolution) -> Option<Grant> {
    let (Ask::Permissions(request), Resolution::Answered { answer, .. }) = (&open.ask, resolution)
    else {
        return None;
    };
    let RequestAnswer::Permissions { granted } = &**answer else {
        return None;
    };
    let grant = Grant::from_answer(&request.permissions, granted);
    (!grant.is_empty()).then_some(grant)
}

/// Formats a grant as models were trained to read it.
fn grant_json(grant: &Grant) -> String {
    let scope = if grant.session { "session" } else { "turn" };
    serde_json::json!({ "permissions": grant.to_wire(), "scope": scope }).to_string()
}

/// Formats answers as models were trained to read them.
fn as_json(answers: &std::collections::BTreeMap<String, Vec<String>>) -> String {
    let answers = answers.iter().map(|(question, answers)| {
        let answers = serde_json::json!({ "answers": answers });
        (question.clone(), answers)
    });
    let answers: serde_json::Map<_, _> = answers.collect();
    serde_json::json!({ "answers": answers }).to_string()
}

fn resolved(request: RequestNumber, resolution: Resolution, grant: Option<Grant>) -> RecordBody {
    Event::RequestResolved(RequestResolved {
        request,
        resolution,
        grant,
    })
    .into()
}

/// Whether an answer is valid for this request. Declining and failing are always valid.
fn fits(ask: &Ask, answer: &RequestAnswer) -> bool {
    match answer {
        RequestAnswer::Decline {} | RequestAnswer::Cancel {} | RequestAnswer::Failed { .. } => true,
        RequestAnswer::Accept {} | RequestAnswer::AcceptForSession {} => {
            matches!(ask, Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_))
        }
        RequestAnswer::AcceptWithRule { .. } => matches!(ask, Ask::Command(_)),
        RequestAnswer::AcceptHunks { .. } => matches!(ask, Ask::Patch(_)),
        RequestAnswer::Permissions { .. } => matches!(ask, Ask::Permissions(_)),
        RequestAnswer::Answers { .. } => matches!(ask, Ask::Questions(_)),
        RequestAnswer::Tool { .. } => matches!(ask, Ask::ClientTool {}),
        RequestAnswer::Elicitation { .. } => matches!(ask, Ask::Elicitation(_)),
    }
}
