//! Requests: open until the first stored answer, and resolved once.

use std::rc::Rc;

use raddle_core::{
    AnswerRequest, Ask, CommandOutcome, Event, Record, RecordBody, Refusal, RequestAnswer,
    RequestNumber, Resolution,
};

use super::{Check, Oracle, broken};
use crate::store::LogRow;

const I4: &str = "I4 requests";

/// Whether the resolution lets a tool run.
pub fn is_approval(resolution: &Resolution) -> bool {
    match resolution {
        Resolution::Answered { answer, .. } => {
            matches!(
                **answer,
                RequestAnswer::Accept {}
                    | RequestAnswer::AcceptForSession {}
                    | RequestAnswer::AcceptWithRule { .. }
            ) || matches!(&**answer, RequestAnswer::AcceptHunks { hunks } if hunks.iter().any(|it| it.accept))
        }
        Resolution::Expired {} | Resolution::Withdrawn {} => false,
    }
}

/// I4: a request opens once and is resolved once, and a client runs only complete calls.
pub fn i4_requests(oracle: &Oracle, record: &Record) -> Check {
    let RecordBody::Event(event) = &record.body else {
        return Ok(());
    };
    match &**event {
        Event::RequestOpened(it) => {
            let known = oracle.requests.contains_key(&it.request)
                || oracle.resolved.contains_key(&it.request);
            if known {
                return broken(I4, format!("request {} opens again", it.request));
            }
            if !oracle.items.get(&it.item).is_some_and(|item| item.open) {
                return broken(I4, format!("request {} is about nothing open", it.request));
            }
            // Sending the request starts the client's tool, which an answer that breaks off must
            // not have done.
            if oracle.answering && it.ask == (Ask::ClientTool {}) {
                return broken(I4, format!("{} is run before its call is whole", it.item));
            }
            Ok(())
        }
        Event::RequestResolved(it) if !oracle.requests.contains_key(&it.request) => broken(
            I4,
            format!("request {} is settled and not open", it.request),
        ),
        _ => Ok(()),
    }
}

/// I4: on one connection a request is sent to a client once, however often the client falls behind.
pub fn i4_sent_once(is_new: bool, request: RequestNumber) -> Check {
    match is_new {
        true => Ok(()),
        false => broken(I4, format!("request {request} is sent to a client twice")),
    }
}

/// I4: no request is withdrawn while its item continues.
pub fn withdrawn_with_their_items(oracle: &Oracle, rows: &[Rc<LogRow>]) -> Check {
    for row in rows {
        let RecordBody::Event(event) = &row.record.body else {
            continue;
        };
        let Event::RequestResolved(it) = &**event else {
            continue;
        };
        if it.resolution != (Resolution::Withdrawn {}) {
            continue;
        }
        let opened = oracle
            .stored_rows
            .values()
            .find_map(|row| match &row.record.body {
                RecordBody::Event(event) => match &**event {
                    Event::RequestOpened(opened) if opened.request == it.request => {
                        Some(opened.clone())
                    }
                    _ => None,
                },
                RecordBody::Delta(_) => None,
            });
        let open = opened.and_then(|opened| oracle.items.get(&opened.item));
        if open.is_some_and(|item| item.open) {
            return broken(
                I4,
                format!("request {} was withdrawn and is still needed", it.request),
            );
        }
    }
    Ok(())
}

/// I4: a client whose answer was accepted gave it; a client whose answer was refused was late.
pub fn i4_answer_result(
    oracle: &Oracle,
    command: &AnswerRequest,
    result: &Result<CommandOutcome, Refusal>,
) -> Check {
    let settled = oracle.resolved.get(&command.request);
    match (result, settled) {
        (Ok(_), Some(Resolution::Answered { by, answer }))
            if *by == command.by && **answer == command.answer =>
        {
            Ok(())
        }
        (Ok(_), other) => broken(
            I4,
            format!(
                "{} was told its answer to {} counts: {other:?}",
                command.by, command.request
            ),
        ),
        (Err(Refusal::AlreadyResolved { .. }), None) => broken(
            I4,
            format!(
                "{} was told {} is settled, and it is open",
                command.by, command.request
            ),
        ),
        (
            Err(Refusal::AlreadyResolved {
                how: Some(settlement),
            }),
            Some(settled),
        ) if *settlement != settled.into() => broken(
            I4,
            format!("{} was settled otherwise than told", command.request),
        ),
        _ => Ok(()),
    }
}

/// I4: a client that received everything has every open request, and no other.
pub fn i4_all_are_sent<'a>(
    oracle: &Oracle,
    sent: impl Iterator<Item = &'a RequestNumber>,
) -> Check {
    let sent: Vec<_> = sent.collect();
    if sent.iter().copied().ne(oracle.requests.keys()) {
        let open: Vec<_> = oracle.requests.keys().collect();
        return broken(
            I4,
            format!("a client is asked {sent:?}, and open are {open:?}"),
        );
    }
    Ok(())
}

/// I4: a request sent to a client is stored as open, or was.
pub fn i4_sent_is_stored(oracle: &Oracle, request: RequestNumber) -> Check {
    let known = oracle.requests.contains_key(&request) || oracle.resolved.contains_key(&request);
    if known {
        Ok(())
    } else {
        broken(I4, format!("request {request} is sent and not stored"))
    }
}
