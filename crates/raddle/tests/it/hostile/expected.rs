//! The expected reply to a frame.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::reference::{Id, Verdict, decode, judge, members};
use crate::support::code;

/// The expected reaction to one frame.
#[derive(Debug)]
pub enum ExpectedReply {
    /// No reply, and the server counts the frame.
    Counted,
    /// No reply: a notification, or a blank line.
    Ignored,
    /// No reply, and the server counts the frame as over the cap.
    TooLong,
    /// One reply: a result, or an error with this code.
    Reply { id: Value, code: Option<i64> },
    /// The websocket closes with this code.
    Close(u16),
}

const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;

impl ExpectedReply {
    /// For a line of stdio.
    pub fn of_line(line: &[u8], cap: usize) -> Self {
        if line.len() > cap {
            return Self::TooLong;
        }
        match line.strip_suffix(b"\r").unwrap_or(line) {
            b"" => Self::Ignored,
            line => Self::of(line),
        }
    }

    /// For a text message of a websocket.
    pub fn of_message(message: &[u8], cap: usize) -> Self {
        if message.len() > cap {
            Self::Close(1009)
        } else if std::str::from_utf8(message).is_err() {
            Self::Close(1007)
        } else {
            Self::of(message)
        }
    }

    fn of(frame: &[u8]) -> Self {
        match judge(frame) {
            Verdict::NotJson
            | Verdict::NotAnObject
            | Verdict::NotAMessage
            | Verdict::AnswerToNothing => Self::Counted,
            // The server sends no requests in this test, so every response is unsolicited.
            Verdict::Answer { .. } => Self::Counted,
            Verdict::Notification { .. } => Self::Ignored,
            Verdict::Refused { id } => Self::Reply {
                id: id.map_or(Value::Null, value),
                code: Some(INVALID_REQUEST),
            },
            Verdict::Request { id, method, params } => Self::Reply {
                id: value(id),
                code: code_of(&method, params),
            },
        }
    }

    /// The name of its counter.
    pub fn kind(&self) -> String {
        match self {
            Self::Counted => "counted".into(),
            Self::Ignored => "ignored".into(),
            Self::TooLong => "too long".into(),
            Self::Reply { code: None, .. } => "result".into(),
            Self::Reply {
                code: Some(code), ..
            } => code.to_string(),
            Self::Close(code) => code.to_string(),
        }
    }
}

fn value(id: Id) -> Value {
    match id {
        Id::Integer(number) => number.into(),
        Id::Text(text) => text.into(),
    }
}

/// The error code for a well-formed request of an initialized client; `None` for a result.
fn code_of(method: &str, params: Option<&str>) -> Option<i64> {
    match method {
        // A second `initialize` is always rejected.
        "initialize" => Some(INVALID_REQUEST),
        "permissionProfile/list" => (!lists_profiles(params)).then_some(INVALID_REQUEST),
        "fs/readFile" => {
            let path = params.and_then(members).into_iter().flatten();
            let named = path.filter(|(name, _)| name == "path");
            for (_, path) in named {
                assert!(decode(path).is_none(), "no frame here may touch a file");
            }
            Some(INVALID_REQUEST)
        }
        _ => Some(METHOD_NOT_FOUND),
    }
}

/// Whether these are valid params of `permissionProfile/list`, by its page in the reference.
fn lists_profiles(params: Option<&str>) -> bool {
    let Some(members) = params.and_then(members) else {
        return false;
    };
    let mut names = Vec::new();
    for (name, value) in &members {
        let fits = match name.as_str() {
            // No cursor was ever returned.
            "cursor" => *value == "null",
            "cwd" => *value == "null" || decode(value).is_some(),
            "limit" => {
                let digits = value.bytes().all(|byte| byte.is_ascii_digit());
                *value == "null" || digits && value.parse::<u32>().is_ok()
            }
            _ => continue,
        };
        if !fits || names.contains(name) {
            return false;
        }
        names.push(name.clone());
    }
    true
}

/// The outstanding replies: how often each is expected, minus how often it came.
#[derive(Default)]
pub struct Replies {
    outstanding: BTreeMap<String, i64>,
}

impl Replies {
    pub fn expect(&mut self, expected: &ExpectedReply) {
        if let ExpectedReply::Reply { id, code } = expected {
            *self
                .outstanding
                .entry(format!("{id} {code:?}"))
                .or_default() += 1;
        }
    }

    pub fn receive(&mut self, reply: &Value) {
        assert!(reply.get("method").is_none(), "not a reply: {reply}");
        let key = format!("{} {:?}", reply["id"], code(reply));
        *self.outstanding.entry(key).or_default() -= 1;
    }

    /// Checks that all expected replies came, and no others.
    pub fn check(&self) {
        let wrong: Vec<_> = self
            .outstanding
            .iter()
            .filter(|(_, count)| **count != 0)
            .collect();
        assert!(
            wrong.is_empty(),
            "replies owed (positive) or not asked for (negative): {wrong:?}"
        );
    }
}
