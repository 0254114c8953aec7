//! The protocols of vendors.

use crate::stream::WireReader;
use crate::{chat, gemini, messages, responses};

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

    /// Returns the header that holds a key, where that is no bearer token.
    pub fn key_header(self) -> Option<&'static str> {
        match self {
            Self::Responses | Self::Chat => None,
            Self::Messages => Some("x-api-key"),
            Self::Gemini => Some("x-goog-api-key"),
        }
    }

    /// Returns a reader for its answers.
    pub(crate) fn reader(self) -> Box<dyn WireReader> {
        match self {
            Self::Responses => Box::new(responses::ResponsesReader::default()),
            Self::Chat => Box::new(chat::ChatReader::default()),
            Self::Messages => Box::new(messages::MessagesReader::default()),
            Self::Gemini => Box::new(gemini::GeminiReader::default()),
        }
    }
}
