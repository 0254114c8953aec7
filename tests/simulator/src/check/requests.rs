//! Requests: open until the first answer that is stored, and settled once.

use std::rc::Rc;

use raddle_core::{
    AnswerRequest, Ask, CommandOutcome, Event, Record, RecordBody, Refusal, RequestAnswer,
    RequestNumber, Resolution,
};

use super::{Check, Oracle, broken};
use crate::store::LogRow;

const I4: &str = "I4 requests";

/// Whether something may run now.
pub fn is_yes(resolution: &Resolution) -> bool {
    match resolution {
        Resolution::Answered { answer, .. } => matches!(
            **answer,
            RequestAnswer::Accept {}
                | RequestAnswer::AcceptForSession {}
                | RequestAnswer::AcceptWithRule { .. }
        ),
        Resolution::Expired {} | Resolution::Withdrawn {} => false,
    }
}

/// I4: a request opens once and is settled once, and a client runs only what is wholly asked for.
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
            // To ask a client is to start its tool, which an answer that breaks off must not have done.
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

/// I4: on one connection a request is put to a client once, however often it falls behind.
pub fn i4_put_once(is_new: bool, request: RequestNumber) -> Check {
    match is_new {
        true => Ok(()),
        false => broken(I4, format!("request {request} is put to a client twice")),
    }
}

/// I4: nobody withdraws a request whose item goes on.
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
        let opened = oracle.ever.values().find_map(|row| match &row.record.body {
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

/// I4: who is told that the answer counts, answered; who is told otherwise, was late.
pub fn i4_answer_told(
    oracle: &Oracle,
    asked: &AnswerRequest,
    told: &Result<CommandOutcome, Refusal>,
) -> Check {
    let settled = oracle.resolved.get(&asked.request);
    match (told, settled) {
        (Ok(_), Some(Resolution::Answered { by, answer }))
            if *by == asked.by && **answer == asked.answer =>
        {
            Ok(())
        }
        (Ok(_), other) => broken(
            I4,
            format!(
                "{} was told its answer to {} counts: {other:?}",
                asked.by, asked.request
            ),
        ),
        (Err(Refusal::AlreadyResolved { .. }), None) => broken(
            I4,
            format!(
                "{} was told {} is settled, and it is open",
                asked.by, asked.request
            ),
        ),
        (Err(Refusal::AlreadyResolved { how: Some(told) }), Some(settled))
            if *told != settled.into() =>
        {
            broken(
                I4,
                format!("{} was settled otherwise than told", asked.request),
            )
        }
        _ => Ok(()),
    }
}

/// I4: a client that has heard everything has before it every request that is open, and no other.
pub fn i4_all_are_asked<'a>(
    oracle: &Oracle,
    asked: impl Iterator<Item = &'a RequestNumber>,
) -> Check {
    let asked: Vec<_> = asked.collect();
    if asked.iter().copied().ne(oracle.requests.keys()) {
        let open: Vec<_> = oracle.requests.keys().collect();
        return broken(
            I4,
            format!("a client is asked {asked:?}, and open are {open:?}"),
        );
    }
    Ok(())
}

/// I4: what is asked of a client is stored as open, or was.
pub fn i4_asked(oracle: &Oracle, request: RequestNumber) -> Check {
    let known = oracle.requests.contains_key(&request) || oracle.resolved.contains_key(&request);
    if known {
        Ok(())
    } else {
        broken(I4, format!("request {request} is asked and not stored"))
    }
}
