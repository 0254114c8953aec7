//! The envelope parser against the reference of the hostile tests: both must agree on any bytes. In
//! particular a request with a bad id is never classified as a notification.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/raddle/tests/it/reference.rs"]
#[expect(dead_code, reason = "the hostile tests also read params with it")]
mod reference;

use raddle_rpc::{DroppedFrame, FrameError, Id, Inbound, code, parse};
use reference::Verdict;

fuzz::target!(|frame: &[u8]| {
    let verdict = verdict_of_parse(frame);
    let expected = reference::judge(frame);
    assert_eq!(verdict, expected);
    if let Verdict::Request { params, .. } | Verdict::Notification { params, .. } = verdict {
        // Handlers read params with serde_json, which must agree that they are valid JSON.
        let params = params.unwrap_or("null");
        serde_json::from_str::<&serde_json::value::RawValue>(params).expect("params are JSON");
    }
});

/// Converts the result of `parse` to the reference's type.
fn verdict_of_parse(frame: &[u8]) -> Verdict<'_> {
    match parse(frame) {
        Ok(Inbound::Request(request)) => Verdict::Request {
            id: id(request.id),
            method: request.method.into_owned(),
            params: request.params.map(|raw| raw.get()),
        },
        Ok(Inbound::Notification(notification)) => Verdict::Notification {
            method: notification.method.into_owned(),
            params: notification.params.map(|raw| raw.get()),
        },
        Ok(Inbound::Response(response)) => Verdict::Answer {
            id: id(response.id),
        },
        Err(FrameError::Refused { id: named, error }) => {
            assert_eq!(error.code, code::INVALID_REQUEST);
            assert!(error.message.len() < 200, "an error carries nothing back");
            Verdict::Refused { id: named.map(id) }
        }
        Err(FrameError::Dropped(noise)) => match noise {
            DroppedFrame::NotJson => Verdict::NotJson,
            DroppedFrame::NotAnObject => Verdict::NotAnObject,
            DroppedFrame::NotAMessage => Verdict::NotAMessage,
            DroppedFrame::AnswerToNothing => Verdict::AnswerToNothing,
        },
    }
}

fn id(id: Id) -> reference::Id {
    match id {
        Id::Integer(number) => reference::Id::Integer(number),
        Id::String(text) => reference::Id::Text(text.into()),
    }
}
