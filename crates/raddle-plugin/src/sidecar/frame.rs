//! Frames of JSON-RPC 2.0: one object, and a line end.

use raddle_console::sanitize;
use raddle_rpc::{ErrorObject, FrameError, Id, Inbound, code, marks};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Longest part of an invalid line that is shown.
const EXCERPT_BYTES_MAX: usize = 200;

/// Longest message of an error that is kept.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// A message of a plugin.
#[derive(Debug)]
pub(crate) enum PluginMessage {
    /// A call of the host.
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    /// An event.
    Notification { method: String, params: Value },
    /// The response to a call of the plugin.
    Response {
        id: Id,
        outcome: Result<Value, PluginError>,
    },
}

/// Error with which a plugin answers a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PluginError {
    /// Code, which the contract does not require.
    pub(crate) code: Option<i64>,
    pub(crate) message: String,
}

/// Deviation of a plugin's output from the contract. The session goes on after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameFault {
    /// A line is no message. It begins with this text.
    NotAMessage(String),
    /// A line is too long, and was dropped.
    TooLong,
    /// A message has too many values.
    TooManyValues,
    /// A message lacks `"jsonrpc": "2.0"`.
    NoVersion,
    /// A request is malformed, for this reason.
    InvalidRequest(String),
    /// A response has both a result and an error.
    ResultAndError,
    /// A response has an id that no open call has.
    UnknownId(String),
    /// Too many calls of the host were open.
    TooManyCalls,
}

/// The result of parsing a line.
pub(super) struct ParsedLine {
    /// `None` if it is no message.
    pub(super) message: Option<PluginMessage>,
    pub(super) faults: Vec<FrameFault>,
    /// The error to send for a malformed request that has an id.
    pub(super) refusal: Option<Vec<u8>>,
}

/// Members of a message that the envelope of `raddle-rpc` does not keep.
#[derive(Default, Deserialize)]
struct FrameMembers<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Parses a line of a plugin's stdout.
pub(super) fn parse(line: &[u8]) -> ParsedLine {
    let mut faults = Vec::new();
    let inbound = match raddle_rpc::parse(line) {
        Ok(inbound) => inbound,
        Err(FrameError::Dropped(_)) => return not_a_message(line),
        Err(FrameError::Refused { id, error }) => {
            return ParsedLine {
                message: None,
                faults: vec![FrameFault::InvalidRequest(error.message.to_string())],
                refusal: id.map(|id| response(&id, &Err(error))),
            };
        }
    };
    // A value takes many times its text once it is parsed.
    if !std::str::from_utf8(line).is_ok_and(marks::are_few) {
        return too_many_values(inbound);
    }
    let members: FrameMembers<'_> = serde_json::from_slice(line).unwrap_or_default();
    if members.jsonrpc.is_none_or(|it| it.get() != "\"2.0\"") {
        faults.push(FrameFault::NoVersion);
    }
    let message = match inbound {
        Inbound::Request(it) => PluginMessage::Request {
            id: it.id,
            method: it.method.into_owned(),
            params: value(it.params),
        },
        Inbound::Notification(it) => PluginMessage::Notification {
            method: it.method.into_owned(),
            params: value(it.params),
        },
        Inbound::Response(it) => {
            if members.result.is_some() && members.error.is_some() {
                faults.push(FrameFault::ResultAndError);
            }
            PluginMessage::Response {
                id: it.id,
                outcome: match members.error {
                    Some(error) => Err(plugin_error(error)),
                    None => result(members.result),
                },
            }
        }
    };
    ParsedLine {
        message: Some(message),
        faults,
        refusal: None,
    }
}

/// Returns what is left of a message whose values are not parsed.
fn too_many_values(inbound: Inbound<'_>) -> ParsedLine {
    let text = format!(
        "the message has more than {} values; send less",
        marks::VALUES_MAX
    );
    let mut parsed = ParsedLine {
        message: None,
        faults: vec![FrameFault::TooManyValues],
        refusal: None,
    };
    match inbound {
        Inbound::Request(it) => {
            let error = ErrorObject::new(code::INVALID_REQUEST, text);
            parsed.refusal = Some(response(&it.id, &Err(error)));
        }
        Inbound::Notification(_) => {}
        Inbound::Response(it) => {
            let outcome = Err(PluginError {
                code: None,
                message: text,
            });
            parsed.message = Some(PluginMessage::Response { id: it.id, outcome });
        }
    }
    parsed
}

/// Describes bytes that are no message.
pub(super) fn not_a_message(line: &[u8]) -> ParsedLine {
    let start = &line[..line.len().min(EXCERPT_BYTES_MAX)];
    let excerpt = String::from_utf8_lossy(start).into_owned();
    ParsedLine {
        message: None,
        faults: vec![FrameFault::NotAMessage(excerpt)],
        refusal: None,
    }
}

/// Returns a request of the host.
pub(super) fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

/// Returns the response to a request of the plugin.
pub(super) fn response(id: &Id, outcome: &Result<Value, ErrorObject>) -> Vec<u8> {
    line(&match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    })
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn value(raw: Option<&RawValue>) -> Value {
    raw.and_then(|it| serde_json::from_str(it.get()).ok())
        .unwrap_or_default()
}

/// Reads a result. One that is nested too deeply, or has a number that no type holds, is an error.
fn result(raw: Option<&RawValue>) -> Result<Value, PluginError> {
    let Some(raw) = raw else {
        return Ok(Value::Null);
    };
    serde_json::from_str(raw.get()).map_err(|error| PluginError {
        code: None,
        message: format!("the result cannot be read: {error}"),
    })
}

/// Reads an error, which may be an object with or without a code, or only a text. Escapes of
/// terminals in it become visible, because items show it.
fn plugin_error(raw: &RawValue) -> PluginError {
    let error = value(Some(raw));
    let message = error["message"].as_str().or_else(|| error.as_str());
    let message = message.unwrap_or("an error without a message");
    let message = &message[..message.floor_char_boundary(ERROR_BYTES_MAX)];
    let mut message = sanitize(message);
    message.truncate(message.floor_char_boundary(ERROR_BYTES_MAX));
    PluginError {
        code: error["code"].as_i64(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes a line as a session sees it.
    fn summary(line: &str) -> String {
        let ParsedLine {
            message,
            faults,
            refusal,
        } = parse(line.as_bytes());
        let message = match message {
            None => "nothing".to_owned(),
            Some(PluginMessage::Request { id, method, params }) => {
                format!("request {id} {method} {params}")
            }
            Some(PluginMessage::Notification { method, params }) => {
                format!("notification {method} {params}")
            }
            Some(PluginMessage::Response { id, outcome }) => match outcome {
                Ok(result) => format!("result {id} {result}"),
                Err(error) => format!("error {id} {:?} {error}", error.code),
            },
        };
        let refusal = refusal.map(|_| " refused").unwrap_or_default();
        format!("{message}{refusal} {faults:?}")
    }

    #[test]
    fn lines_are_classified() {
        for (line, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":"host-7-host/ping","method":"host/ping"}"#,
                "request host-7-host/ping host/ping null []",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"codex/event","params":{"kind":"x"}}"#,
                r#"notification codex/event {"kind":"x"} []"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"raddle-1","result":{"ok":true}}"#,
                r#"result raddle-1 {"ok":true} []"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"raddle-1","error":{"message":"no"}}"#,
                "error raddle-1 None no []",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"raddle-1","error":{"code":-1,"message":"no"}}"#,
                "error raddle-1 Some(-1) no []",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"raddle-1","result":1,"error":null}"#,
                "result raddle-1 1 []",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"raddle-1","result":1,"error":"x"}"#,
                "error raddle-1 None x [ResultAndError]",
            ),
            (r#"{"id":"a","result":1}"#, "result a 1 [NoVersion]"),
            ("starting", r#"nothing [NotAMessage("starting")]"#),
            (r#"["a"]"#, r#"nothing [NotAMessage("[\"a\"]")]"#),
        ] {
            assert_eq!(summary(line), expected, "{line}");
        }
        let unreadable = summary(r#"{"jsonrpc":"2.0","id":"raddle-1","result":1e999}"#);
        let expected = "error raddle-1 None the result cannot be read: ";
        assert!(unreadable.starts_with(expected), "{unreadable}");
        let refused = summary(r#"{"jsonrpc":"2.0","id":"a","method":7}"#);
        assert!(
            refused.starts_with("nothing refused [InvalidRequest("),
            "{refused}"
        );
    }

    #[test]
    fn a_long_error_is_shortened() {
        let long = "é".repeat(1 << 20);
        for error in [json!({ "message": long }), json!(long)] {
            let line = json!({ "jsonrpc": "2.0", "id": "a", "error": error }).to_string();
            let expected = format!("error a None {} []", "é".repeat(ERROR_BYTES_MAX / 2));
            assert!(summary(&line) == expected);
        }
    }

    #[test]
    fn escapes_in_an_error_become_visible() {
        let text = "\u{1b}[2J\u{9b}31m\u{202e}it\n\tfailed";
        let expected = "error a None \\u{1b}[2J\\u{9b}31m\\u{202e}it\n\tfailed []";
        for error in [json!({ "message": text }), json!(text)] {
            let line = json!({ "jsonrpc": "2.0", "id": "a", "error": error }).to_string();
            assert_eq!(summary(&line), expected);
        }
        let error = "\u{1b}".repeat(1 << 20);
        let line = json!({ "jsonrpc": "2.0", "id": "a", "error": error }).to_string();
        assert!(summary(&line).len() < ERROR_BYTES_MAX + 100);
    }

    #[test]
    fn the_values_of_a_message_are_not_parsed_if_there_are_too_many() {
        let many = format!("[{}0]", "0,".repeat(marks::VALUES_MAX));
        let error = "the message has more than 100000 values; send less";
        for (members, expected) in [
            (
                r#""id":"a","method":"host/x","params":"#,
                "nothing refused".to_owned(),
            ),
            (r#""method":"event","params":"#, "nothing".to_owned()),
            (r#""id":"a","result":"#, format!("error a None {error}")),
            (
                r#""id":"a","method":"host/x","extra":"#,
                "nothing refused".to_owned(),
            ),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0",{members}{many}}}"#);
            assert_eq!(
                summary(&line),
                format!("{expected} [TooManyValues]"),
                "{members}"
            );
        }
    }
}
