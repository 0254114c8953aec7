//! The ways in which vendors are spoken to.

use crate::stream::WireReader;
use crate::{chat, gemini, messages, responses};

/// How a vendor is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which most engines and brokers speak.
    Chat,
    /// Anthropic Messages.
    Messages,
    /// Gemini's `streamGenerateContent`.
    Gemini,
}

impl WireFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Responses, Self::Chat, Self::Messages, Self::Gemini];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Gemini => "gemini",
        }
    }

    /// The wire with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The header that holds a key, where that is no bearer token.
    pub fn key_header(self) -> Option<&'static str> {
        match self {
            Self::Responses | Self::Chat => None,
            Self::Messages => Some("x-api-key"),
            Self::Gemini => Some("x-goog-api-key"),
        }
    }

    /// Reads an answer on it.
    pub(crate) fn reader(self) -> Box<dyn WireReader> {
        match self {
            Self::Responses => Box::new(responses::ResponsesReader::default()),
            Self::Chat => Box::new(chat::ChatReader::default()),
            Self::Messages => Box::new(messages::MessagesReader::default()),
            Self::Gemini => Box::new(gemini::GeminiReader::default()),
        }
    }
}
