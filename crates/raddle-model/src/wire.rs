//! The protocols of vendors.

use std::fmt;

use crate::{CallError, StreamEvent};

/// Protocol of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// The OpenAI Responses API.
    Responses,
    /// The OpenAI Chat Completions API, which most engines and brokers serve.
    Chat,
    /// The Anthropic Messages API.
    Messages,
    /// The `streamGenerateContent` method of Gemini.
    Gemini,
}

impl WireFormat {
    /// All formats, for iteration.
    pub const ALL: [Self; 4] = [Self::Responses, Self::Chat, Self::Messages, Self::Gemini];

    /// Returns its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the wire with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the header that holds a key, if it is not sent as a bearer token.
    pub fn key_header(self) -> Option<&'static str> {
        match self {
            Self::Responses | Self::Chat => None,
            Self::Messages => Some("x-api-key"),
            Self::Gemini => Some("x-goog-api-key"),
        }
    }
}

/// Reads the events of one wire.
pub(crate) trait WireReader: fmt::Debug + Send {
    /// Reads an event and appends the events that it means. Returns whether it shows that the model
    /// is at work: vendors send some events only as keep-alives.
    fn read(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> Result<bool, CallError>;

    /// Ends the stream. Appends the remaining events if an answer may end here.
    fn end(&mut self, events: &mut Vec<StreamEvent>);
}

/// Limit: items and calls that one model response begins; beyond it, the call fails.
///
/// A consumer searches all open ones for each event, so the cost of an answer must not grow with
/// everything that fits into its bytes.
pub const ITEMS_MAX: usize = 1_024;

/// Returns the error of an answer with more.
pub(crate) fn too_many_items() -> CallError {
    CallError::Malformed(format!("it has more than {ITEMS_MAX} items"))
}
