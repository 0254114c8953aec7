//! What a model says.

use std::sync::Arc;

use serde_json::Value;

/// What a model says.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// An item begins.
    Started {
        /// The vendor's id for it.
        id: Arc<str>,
        /// What it is.
        kind: ItemKind,
    },
    /// A message grows.
    Text {
        /// Which.
        id: Arc<str>,
        /// By what.
        text: String,
    },
    /// A summary of the thinking grows.
    Summary {
        /// Which item.
        id: Arc<str>,
        /// Which part of it.
        part: u32,
        /// By what.
        text: String,
    },
    /// The thinking itself grows.
    Thought {
        /// Which item.
        id: Arc<str>,
        /// Which part of it.
        part: u32,
        /// By what.
        text: String,
    },
    /// A message is whole.
    Message {
        /// Which.
        id: Arc<str>,
        /// All of it. Where the model refuses, what it says about that.
        text: String,
        /// What part of the answer it is, in the vendor's word.
        phase: Option<String>,
        /// What else it is, for the vendor's eyes.
        sealed: Option<Value>,
    },
    /// The thinking is over.
    Reasoning {
        /// Which.
        id: Arc<str>,
        /// Its summary, part by part.
        summary: Vec<String>,
        /// The thinking itself, part by part, from vendors that show it.
        content: Vec<String>,
        /// The item as it came, for the vendor's eyes.
        sealed: Value,
    },
    /// It calls a tool.
    Call {
        /// The call's id.
        call_id: String,
        /// The tool.
        name: String,
        /// What it is called with, as written.
        arguments: String,
        /// In what form.
        form: CallForm,
    },
    /// It has said everything.
    Completed(Option<Tokens>),
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A message.
    Message,
    /// Thinking.
    Reasoning,
}

/// In what form a tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallForm {
    /// With arguments in JSON.
    Function,
    /// With a text.
    Freeform,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Sent, cached ones included.
    pub input: u64,
    /// Of these, read from a cache.
    pub cached: u64,
    /// Of these, written to a cache, from vendors that say so.
    pub cache_written: u64,
    /// Produced, reasoning included.
    pub output: u64,
    /// Of these, reasoning.
    pub reasoning: u64,
}

impl StreamEvent {
    /// Takes over what the next event says, if both are text of the same part; else gives it back.
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
