//! Events of a model's answer.

use std::sync::Arc;

use serde_json::Value;

/// Event of a model's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// The start of an item.
    Started {
        /// The vendor's id of the item.
        id: Arc<str>,
        /// The kind of the item.
        kind: ItemKind,
    },
    /// More text of a message.
    Text {
        /// Id of the message.
        id: Arc<str>,
        /// The text to append.
        text: String,
    },
    /// More text of a summary of the thinking.
    Summary {
        /// Id of the item.
        id: Arc<str>,
        /// Index of the part.
        part: u32,
        /// The text to append.
        text: String,
    },
    /// More text of the thinking itself.
    Thought {
        /// Id of the item.
        id: Arc<str>,
        /// Index of the part.
        part: u32,
        /// The text to append.
        text: String,
    },
    /// A message, complete with its text.
    Message {
        /// Id of the message.
        id: Arc<str>,
        /// The complete text; where the model refuses, the refusal.
        text: String,
        /// The part of the answer that it is, in the vendor's term.
        phase: Option<String>,
        /// Opaque data to send back to the vendor.
        sealed: Option<Value>,
    },
    /// The thinking, complete with its summary.
    Reasoning {
        /// Id of the item.
        id: Arc<str>,
        /// Its summary, part by part.
        summary: Vec<String>,
        /// The thinking itself, part by part, from vendors that show it.
        content: Vec<String>,
        /// The item as it came, to send back to the vendor.
        sealed: Value,
    },
    /// A call of a tool.
    Call {
        /// The vendor's id of the call.
        call_id: String,
        /// The name of the tool.
        name: String,
        /// The arguments, as the model wrote them.
        arguments: String,
        /// The form of the arguments.
        form: CallForm,
    },
    /// The answer is complete.
    Completed(Option<Tokens>),
}

/// Kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Text for the user.
    Message,
    /// The model's thinking, or a summary of it.
    Reasoning,
}

/// Form of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallForm {
    /// With arguments in JSON.
    Function,
    /// With plain text instead of JSON.
    Freeform,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens sent, cached ones included.
    pub input: u64,
    /// Tokens among them that were read from a cache.
    pub cached: u64,
    /// Tokens among them that were written to a cache, from vendors that report it.
    pub cache_written: u64,
    /// Tokens produced, reasoning included.
    pub output: u64,
    /// Tokens among them that were reasoning.
    pub reasoning: u64,
}

impl StreamEvent {
    /// Appends the next event if both are text of the same part; otherwise returns it.
    pub(crate) fn grow(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (
                Self::Text { id, text },
                Self::Text {
                    id: same,
                    text: more,
                },
            ) if *id == same => {
                text.push_str(&more);
            }
            (
                Self::Summary { id, part, text },
                Self::Summary {
                    id: same,
                    part: also,
                    text: more,
                },
            )
            | (
                Self::Thought { id, part, text },
                Self::Thought {
                    id: same,
                    part: also,
                    text: more,
                },
            ) if *id == same && *part == also => text.push_str(&more),
            (_, next) => return Some(next),
        }
        None
    }
}
