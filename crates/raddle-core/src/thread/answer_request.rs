//! Answering a request: the first answer counts, and everyone after it is told so.

use super::state::OpenRequest;
use super::{Decision, OpenItem, OpenTurn, Thread, closing};
use crate::{
    AnswerRequest, Ask, Cause, Event, Gate, Grant, ItemBody, ItemStatus, Output, RecordBody,
    Refusal, RequestAnswer, RequestNumber, RequestResolved, Resolution, Timestamp,
};

/// What the model is told where it asked for rights and got none.
const NOTHING_GIVEN: &str =
    "The user granted none of these permissions. Find another way, or ask the user.";

pub(super) fn decide(
    thread: &Thread,
    it: AnswerRequest,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let Some(open) = thread.requests.get(&it.request) else {
        return again(thread, it);
    };
    if !fits(&open.ask, &it.answer) {
        return Err(Refusal::WrongAnswer);
    }
    let resolution = Resolution::Answered {
        by: it.by,
        answer: Box::new(it.answer),
    };
    Ok(settle(thread, it.request, open, resolution, now).into())
}

fn again(thread: &Thread, it: AnswerRequest) -> Result<Decision, Refusal> {
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

/// Settles a request and does what follows for its item.
pub(super) fn settle(
    thread: &Thread,
    request: RequestNumber,
    open: &OpenRequest,
    resolution: Resolution,
    now: Timestamp,
) -> Vec<RecordBody> {
    let grant = given(open, &resolution);
    let mut bodies = vec![resolved(request, resolution.clone(), grant.clone())];
    let Some(turn) = &thread.turn else {
        return bodies;
    };
    let Some(item) = thread.open_item(&open.item) else {
        return bodies;
    };
    match item.gate {
        // A tool that runs takes the answer itself.
        _ if item.started => {}
        // A client that runs a tool was asked to after someone's yes.
        Some(Gate::Approval) if open.ask != (Ask::ClientTool {}) => {
            bodies.extend(decline(turn, item, &resolution, now));
        }
        Some(Gate::Approval | Gate::Answer) => {
            bodies.push(answered(turn, item, open, &resolution, now));
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

/// What a no means for the item; a yes only makes it ready.
fn decline(
    turn: &OpenTurn,
    item: &OpenItem,
    resolution: &Resolution,
    now: Timestamp,
) -> Option<RecordBody> {
    let (status, text) = match resolution {
        Resolution::Answered { answer, .. } => match &**answer {
            RequestAnswer::Accept {}
            | RequestAnswer::AcceptForSession {}
            | RequestAnswer::AcceptWithRule { .. } => {
                return None;
            }
            RequestAnswer::Failed { message: why } => (
                ItemStatus::Failed,
                format!("No answer could be had to the question whether this may run: {why}"),
            ),
            RequestAnswer::Decline {}
            | RequestAnswer::Cancel {}
            | RequestAnswer::Permissions { .. }
            | RequestAnswer::Answers { .. }
            | RequestAnswer::Tool { .. }
            | RequestAnswer::Elicitation { .. } => (
                ItemStatus::Declined,
                "The user declined this call. Nothing was done.".to_owned(),
            ),
        },
        Resolution::Expired {} => (
            ItemStatus::Declined,
            "Nobody answered in time whether this may run, so it was not.".to_owned(),
        ),
        Resolution::Withdrawn {} => return None,
    };
    let output = Output::failure(text);
    Some(closing::tool_ended(turn, item, status, output, now))
}

/// The answer is what the tool gives back.
fn answered(
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
            RequestAnswer::Permissions { .. } => match given(open, resolution) {
                Some(grant) => (ItemStatus::Completed, Output::text(in_words(&grant))),
                None => (ItemStatus::Declined, Output::failure(NOTHING_GIVEN)),
            },
            RequestAnswer::Elicitation { body } => {
                (ItemStatus::Completed, Output::text(body.to_string()))
            }
            RequestAnswer::Failed { message: why } => (
                ItemStatus::Failed,
                Output::failure(format!("No answer could be had: {why}")),
            ),
            RequestAnswer::Accept {}
            | RequestAnswer::AcceptForSession {}
            | RequestAnswer::AcceptWithRule { .. } => (ItemStatus::Completed, Output::text("Yes.")),
            RequestAnswer::Decline {} | RequestAnswer::Cancel {} => (
                ItemStatus::Declined,
                Output::failure("The user declined to answer."),
            ),
        },
        Resolution::Expired {} | Resolution::Withdrawn {} => (
            ItemStatus::Failed,
            Output::failure("Nobody answered in time."),
        ),
    };
    let mut last = closing::last_form(item, status, now);
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

/// The rights that an answer gives, if it gives any of those that were asked for.
fn given(open: &OpenRequest, resolution: &Resolution) -> Option<Grant> {
    let (Ask::Permissions(asked), Resolution::Answered { answer, .. }) = (&open.ask, resolution)
    else {
        return None;
    };
    let RequestAnswer::Permissions { granted } = &**answer else {
        return None;
    };
    let grant = Grant::given(&asked.permissions, granted);
    (!grant.is_empty()).then_some(grant)
}

/// The form in which models were taught to read what they were given.
fn in_words(grant: &Grant) -> String {
    let scope = if grant.session { "session" } else { "turn" };
    serde_json::json!({ "permissions": grant.to_wire(), "scope": scope }).to_string()
}

/// The form in which models were taught to read answers.
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

/// Whether an answer is one to this question. A no and a failure fit every question.
fn fits(ask: &Ask, answer: &RequestAnswer) -> bool {
    match answer {
        RequestAnswer::Decline {} | RequestAnswer::Cancel {} | RequestAnswer::Failed { .. } => true,
        RequestAnswer::Accept {} | RequestAnswer::AcceptForSession {} => {
            matches!(ask, Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_))
        }
        RequestAnswer::AcceptWithRule { .. } => matches!(ask, Ask::Command(_)),
        RequestAnswer::Permissions { .. } => matches!(ask, Ask::Permissions(_)),
        RequestAnswer::Answers { .. } => matches!(ask, Ask::Questions(_)),
        RequestAnswer::Tool { .. } => matches!(ask, Ask::ClientTool {}),
        RequestAnswer::Elicitation { .. } => matches!(ask, Ask::Elicitation(_)),
    }
}
