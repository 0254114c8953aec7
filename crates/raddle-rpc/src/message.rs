//! The envelope: classifies a frame in one strict pass.
//!
//! Members are read by name, never by trying shapes in turn. A request with a bad id therefore
//! stays a bad request and cannot become a notification.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// Error codes of the envelope. The server's own codes are in its `wire_error.rs`.
pub mod code {
    /// The request is malformed, too early, or impossible.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Unknown or unsupported method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are invalid or too long.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed to handle a valid request.
    pub const INTERNAL: i64 = -32603;
    /// The server is overloaded; the error's data says when to retry.
    pub const OVERLOADED: i64 = -32001;
}

/// Limit: nesting of a message, in levels; beyond it, the server rejects the request with -32600.
pub const DEPTH_MAX: usize = 64;

/// Limit: an id or a method name; beyond it, the server rejects the request with -32600.
const NAME_BYTES_MAX: usize = 1024;

/// Limit: `data` of an error from a client; beyond it, the server reads the error without it.
const ERROR_DATA_BYTES_MAX: usize = 64 << 10;

/// Id of a request, echoed unchanged in the response.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// A 64-bit integer.
    Integer(i64),
    /// A string.
    String(Box<str>),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => fmt::Display::fmt(number, f),
            Self::String(text) => f.write_str(text),
        }
    }
}

/// A frame from the peer, parsed up to its params.
#[derive(Debug)]
pub enum Inbound<'a> {
    /// A request: the peer expects a response.
    Request(InboundRequest<'a>),
    /// A notification: the peer expects no response.
    Notification(InboundNotification<'a>),
    /// Responds to a request of this side.
    Response(InboundResponse<'a>),
}

/// A request from the peer.
#[derive(Debug)]
pub struct InboundRequest<'a> {
    /// Id of the response.
    pub id: Id,
    /// Name of the method.
    pub method: Cow<'a, str>,
    /// Params, not parsed yet.
    pub params: Option<&'a RawValue>,
}

/// A notification from the peer.
#[derive(Debug)]
pub struct InboundNotification<'a> {
    /// Name of the method.
    pub method: Cow<'a, str>,
    /// Params, not parsed yet.
    pub params: Option<&'a RawValue>,
    /// Sequence number of the record, if it has one.
    pub seq: Option<u64>,
}

/// The peer's response to a request of this side.
#[derive(Debug)]
pub struct InboundResponse<'a> {
    /// Id of the request.
    pub id: Id,
    /// The result or the error.
    pub outcome: Result<&'a RawValue, ErrorObject>,
}

/// The `error` member of a response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ErrorObject {
    /// Kind of error; see [`code`].
    pub code: i64,
    /// Message: what happened, why, and what to do.
    pub message: Cow<'static, str>,
    /// Details for programs, such as when to retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<serde_json::Value>>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Adds data to the error.
    pub fn with_data(mut self, data: serde_json::Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }
}

/// Reason why a frame is not a message.
#[derive(Debug)]
pub enum FrameError {
    /// Dropped and counted; it has no sender to answer.
    Dropped(DroppedFrame),
    /// Answered with an error, under its id if that is usable.
    Refused {
        /// The id, if it is usable.
        id: Option<Id>,
        /// The error to send.
        error: ErrorObject,
    },
}

/// Kinds of frames that are dropped without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DroppedFrame {
    /// Not JSON, or not UTF-8.
    NotJson,
    /// JSON, but not an object: a batch or a scalar.
    NotAnObject,
    /// An object that is neither a request nor a notification nor a response.
    NotAMessage,
    /// A response without a usable id.
    AnswerToNothing,
}

/// Parses a frame.
///
/// ```
/// use raddle_rpc::{Inbound, parse};
///
/// let frame = br#"{"id": 7, "method": "model/list", "params": {}}"#;
/// let Ok(Inbound::Request(request)) = parse(frame) else { panic!() };
/// assert_eq!(request.method, "model/list");
/// ```
pub fn parse(frame: &[u8]) -> Result<Inbound<'_>, FrameError> {
    let text =
        std::str::from_utf8(frame).map_err(|_| FrameError::Dropped(DroppedFrame::NotJson))?;
    if !text.trim_ascii_start().starts_with('{') {
        // The two are distinguished for the counters only.
        let json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        return Err(FrameError::Dropped(if json {
            DroppedFrame::NotAnObject
        } else {
            DroppedFrame::NotJson
        }));
    }
    let members: EnvelopeMembers =
        serde_json::from_str(text).map_err(|_| FrameError::Dropped(DroppedFrame::NotJson))?;
    members.classify()
}

/// The raw members of an envelope.
#[derive(Default)]
struct EnvelopeMembers<'a> {
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    seq: Option<u64>,
    repeated: Option<&'static str>,
    /// Whether a member that is otherwise ignored nests too deep.
    deep: bool,
}

impl<'a> EnvelopeMembers<'a> {
    fn classify(self) -> Result<Inbound<'a>, FrameError> {
        let id = self.id.map(|raw| read_id(raw.get()));
        let is_response = self.result.is_some() || self.error.is_some();
        if self.method.is_none() {
            return match id {
                _ if !is_response => Err(FrameError::Dropped(DroppedFrame::NotAMessage)),
                Some(Some(id)) if self.repeated.is_none() => {
                    Ok(Inbound::Response(InboundResponse {
                        id,
                        outcome: self.outcome(),
                    }))
                }
                _ => Err(FrameError::Dropped(DroppedFrame::AnswerToNothing)),
            };
        }

        // From here on it is a request or a notification; every fault is answered.
        let known_id = match &id {
            Some(Some(id)) if self.repeated != Some("id") => Some(id.clone()),
            _ => None,
        };
        let refuse = |message: Cow<'static, str>| {
            Err(FrameError::Refused {
                id: known_id.clone(),
                error: ErrorObject::new(code::INVALID_REQUEST, message),
            })
        };
        if let Some(name) = self.repeated {
            return refuse(format!("Invalid request: member `{name}` appears twice").into());
        }
        if matches!(id, Some(None)) {
            return refuse(
                "Invalid request: id must be a string of at most 1024 bytes or a 64-bit integer"
                    .into(),
            );
        }
        if is_response {
            return refuse(
                "Invalid request: a message with a method cannot carry a result or an error".into(),
            );
        }
        let Some(method) = self.method.and_then(|raw| read_name(raw.get())) else {
            return refuse("Invalid request: method must be a string of at most 1024 bytes".into());
        };
        let params_deep = self
            .params
            .is_some_and(|raw| deeper_than(raw.get(), DEPTH_MAX - 1));
        if self.deep || params_deep {
            return refuse(
                format!("Invalid request: nested deeper than {DEPTH_MAX} levels").into(),
            );
        }
        let (params, seq) = (self.params, self.seq);
        Ok(match known_id {
            Some(id) => Inbound::Request(InboundRequest { id, method, params }),
            None => Inbound::Notification(InboundNotification {
                method,
                params,
                seq,
            }),
        })
    }

    fn outcome(&self) -> Result<&'a RawValue, ErrorObject> {
        let outcome = self.error.or(self.result);
        if outcome.is_some_and(|it| deeper_than(it.get(), DEPTH_MAX - 1)) {
            return Err(ErrorObject::new(
                code::INVALID_REQUEST,
                "the answer is nested too deep",
            ));
        }
        match (self.error, self.result) {
            (None, Some(result)) => Ok(result),
            (error, _) => Err(error.and_then(read_error).unwrap_or_else(|| {
                ErrorObject::new(
                    code::INVALID_REQUEST,
                    "the peer's error has no code and message",
                )
            })),
        }
    }
}

/// The members of an error, with its data not parsed yet.
#[derive(Deserialize)]
struct ErrorMembers<'a> {
    code: i64,
    message: String,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

/// Reads the error of a response, if it is one. Parsed data takes many times the memory of its
/// text, so its size is checked first.
fn read_error(raw: &RawValue) -> Option<ErrorObject> {
    let ErrorMembers {
        code,
        message,
        data,
    } = serde_json::from_str(raw.get()).ok()?;
    let error = ErrorObject::new(code, message);
    let data = data.filter(|it| it.get().len() <= ERROR_DATA_BYTES_MAX);
    Some(
        match data.and_then(|it| serde_json::from_str(it.get()).ok()) {
            Some(data) => error.with_data(data),
            None => error,
        },
    )
}

impl<'de: 'a, 'a> Deserialize<'de> for EnvelopeMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;

        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = EnvelopeMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<EnvelopeMembers<'de>, A::Error> {
                let mut members = EnvelopeMembers::default();
                while let Some(name) = map.next_key::<MemberName>()? {
                    let (slot, text) = match name {
                        MemberName::Id => (&mut members.id, "id"),
                        MemberName::Method => (&mut members.method, "method"),
                        MemberName::Params => (&mut members.params, "params"),
                        MemberName::Result => (&mut members.result, "result"),
                        MemberName::Error => (&mut members.error, "error"),
                        MemberName::Seq | MemberName::Other => {
                            let value: &RawValue = map.next_value()?;
                            members.deep |= deeper_than(value.get(), DEPTH_MAX - 1);
                            if matches!(name, MemberName::Seq) {
                                members.seq = value.get().parse().ok();
                            }
                            continue;
                        }
                    };
                    if slot.replace(map.next_value()?).is_some() && members.repeated != Some("id") {
                        members.repeated = Some(text);
                    }
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

enum MemberName {
    Id,
    Method,
    Params,
    Result,
    Error,
    Seq,
    Other,
}

impl<'de> Deserialize<'de> for MemberName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MemberNameVisitor;

        impl Visitor<'_> for MemberNameVisitor {
            type Value = MemberName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_str<E>(self, name: &str) -> Result<MemberName, E> {
                Ok(match name {
                    "id" => MemberName::Id,
                    "method" => MemberName::Method,
                    "params" => MemberName::Params,
                    "result" => MemberName::Result,
                    "error" => MemberName::Error,
                    "seq" => MemberName::Seq,
                    _ => MemberName::Other,
                })
            }
        }

        deserializer.deserialize_identifier(MemberNameVisitor)
    }
}

fn read_id(raw: &str) -> Option<Id> {
    match raw.as_bytes().first()? {
        b'"' => read_name(raw).map(|text| Id::String(text.into())),
        _ => raw.parse().ok().map(Id::Integer),
    }
}

fn read_name(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    // An escape takes at most six bytes per byte of text. Longer names are rejected before copying.
    if inner.len() > 6 * NAME_BYTES_MAX {
        return None;
    }
    // Without escapes the raw text is the name.
    let text = if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        Cow::Borrowed(inner)
    } else {
        Cow::Owned(serde_json::from_str::<String>(raw).ok()?)
    };
    (text.len() <= NAME_BYTES_MAX).then_some(text)
}

/// Whether valid JSON nests deeper than `max`.
fn deeper_than(json: &str, max: usize) -> bool {
    // Each level takes two bytes, so short texts need no scan.
    if json.len() < 2 * max {
        return false;
    }
    let bytes = json.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(bytes, at),
            _ => {}
        }
        at += 1;
    }
    false
}

/// Returns the index of the quote that ends the string beginning at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(offset) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += offset;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Summary of a parsed frame.
    fn summary(frame: &str) -> String {
        match parse(frame.as_bytes()) {
            Ok(Inbound::Request(it)) => format!("request {} {}", it.id, it.method),
            Ok(Inbound::Notification(it)) => match it.seq {
                Some(seq) => format!("notification {} {seq}", it.method),
                None => format!("notification {}", it.method),
            },
            Ok(Inbound::Response(it)) => match it.outcome {
                Ok(value) => format!("answer {} {}", it.id, value.get()),
                Err(error) => match error.data {
                    Some(data) => format!("error {} {} {data}", it.id, error.code),
                    None => format!("error {} {}", it.id, error.code),
                },
            },
            Err(FrameError::Dropped(dropped)) => format!("{dropped:?}"),
            Err(FrameError::Refused { id: Some(id), .. }) => format!("refused {id}"),
            Err(FrameError::Refused { id: None, .. }) => "refused".to_owned(),
        }
    }

    #[test]
    fn envelopes() {
        let deep = format!(
            r#"{{"id":1,"method":"m","params":{}1{}}}"#,
            "[".repeat(64),
            "]".repeat(64)
        );
        let edge = format!(
            r#"{{"id":1,"method":"m","params":{}1{}}}"#,
            "[".repeat(63),
            "]".repeat(63)
        );
        let long = format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(1025));
        let long_method = format!(r#"{{"id":1,"method":"{}"}}"#, "x".repeat(1025));
        let data =
            |data: &str| format!(r#"{{"id":1,"error":{{"code":-3,"message":"x","data":{data}}}}}"#);
        let deep_data = data(&format!("{}1{}", "[".repeat(63), "]".repeat(63)));
        let long_data = data(&format!("[{}0]", "0,".repeat(ERROR_DATA_BYTES_MAX / 2)));
        let quoted = format!(
            r#"{{"id":1,"method":"m","params":["{}\""]}}"#,
            "[{".repeat(100)
        );
        for (frame, expected) in [
            (r#"{"id":1,"method":"m"}"#, "request 1 m"),
            (
                r#"{"id":"a","method":"m","params":null,"jsonrpc":"2.0"}"#,
                "request a m",
            ),
            (r#"{"\u0069d":1,"method":"m\/n"}"#, "request 1 m/n"),
            (r#" {"method":"m"} "#, "notification m"),
            (r#"{"method":"m","seq":7}"#, "notification m 7"),
            (r#"{"method":"m","seq":"7"}"#, "notification m"),
            (r#"{"method":"m","seq":-7}"#, "notification m"),
            (r#"{"id":1,"result":{}}"#, "answer 1 {}"),
            (
                r#"{"id":1,"error":{"code":-3,"message":"x"}}"#,
                "error 1 -3",
            ),
            (r#"{"id":1,"error":7}"#, "error 1 -32600"),
            (&data("null"), "error 1 -3"),
            (&data(r#"{"a":1}"#), r#"error 1 -3 {"a":1}"#),
            (&long_data, "error 1 -3"),
            (&deep_data, "error 1 -32600"),
            (
                &deep.replace(r#""method":"m","params""#, r#""result""#),
                "error 1 -32600",
            ),
            // A bad id is rejected; the request never becomes a notification.
            (r#"{"id":null,"method":"m"}"#, "refused"),
            (r#"{"id":1.5,"method":"m"}"#, "refused"),
            (r#"{"id":1e3,"method":"m"}"#, "refused"),
            (r#"{"id":9223372036854775808,"method":"m"}"#, "refused"),
            (r#"{"id":true,"method":"m"}"#, "refused"),
            (r#"{"id":{},"method":"m"}"#, "refused"),
            (r#"{"id":1,"id":1,"method":"m"}"#, "refused"),
            (&long, "refused"),
            // The error carries the id if it is usable.
            (r#"{"id":1,"method":"m","method":"n"}"#, "refused 1"),
            (r#"{"id":1,"method":7}"#, "refused 1"),
            (&long_method, "refused 1"),
            (r#"{"id":1,"method":"m","result":1}"#, "refused 1"),
            (&deep, "refused 1"),
            (&edge, "request 1 m"),
            (&deep.replace("params", "trace"), "refused 1"),
            (&edge.replace("params", "trace"), "request 1 m"),
            (&deep.replace("params", "seq"), "refused 1"),
            (&quoted, "request 1 m"),
            // Dropped without a response.
            (r#"{"id":1}"#, "NotAMessage"),
            (r#"{}"#, "NotAMessage"),
            (r#"{"id":null,"result":1}"#, "AnswerToNothing"),
            (r#"{"id":1,"id":2,"result":1}"#, "AnswerToNothing"),
            (r#"[{"id":1,"method":"m"}]"#, "NotAnObject"),
            (r#"7"#, "NotAnObject"),
            (r#""#, "NotJson"),
            (r#"{"id":1,"method":"m"} {}"#, "NotJson"),
            (r#"{"id":1,"method":"m","#, "NotJson"),
            (r#"{'id':1}"#, "NotJson"),
        ] {
            assert_eq!(summary(frame), expected, "{frame}");
        }
        assert!(matches!(
            parse(b"{\"a\":\"\xc3\"}"),
            Err(FrameError::Dropped(DroppedFrame::NotJson))
        ));
    }
}
