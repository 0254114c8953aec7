//! History that did not happen here.

use serde::{Deserialize, Serialize};

use super::{Input, Output, ToolCall};

/// The model is given history that did not happen here, or a word of ours. Nobody is told; it is read with the
/// next call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemsInjected {
    /// Oldest first. Every call among them has its output behind it.
    pub items: Vec<InjectedItem>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// One piece of such history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InjectedItem {
    /// From a user.
    User {
        /// Its parts.
        input: Vec<Input>,
    },
    /// From whoever made the agent.
    Developer {
        /// The text.
        text: String,
    },
    /// Text for the model that no one said.
    Note {
        /// The text.
        text: String,
    },
    /// From an agent.
    Assistant {
        /// The text.
        text: String,
    },
    /// A model asked for a tool.
    Call(ToolCall),
    /// What came of a call.
    Output {
        /// The call.
        call: String,
        /// What came of it.
        output: Output,
    },
}

impl InjectedItem {
    /// How many bytes of text a model reads of it.
    pub fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::User { input } => {
                let texts = input.iter().map(|it| match it {
                    Input::Text { text, .. } => text.len(),
                    _ => 0,
                });
                texts.sum()
            }
            Self::Developer { text } | Self::Note { text } | Self::Assistant { text } => text.len(),
            Self::Call(call) => call.id.len() + call.tool.len() + call.arguments.len(),
            Self::Output { call, output } => call.len() + output.text.len(),
        };
        bytes as u64
    }
}
