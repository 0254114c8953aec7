//! History from outside this thread.

use serde::{Deserialize, Serialize};

use super::{Input, Output, ToolCall};

/// The model gets history from outside this thread, or a note of ours. Clients are not notified;
/// the next model call includes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemsInjected {
    /// Items, oldest first. Every call among them has its output after it.
    pub items: Vec<InjectedItem>,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

/// One item of injected history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum InjectedItem {
    /// A message of a user.
    User {
        /// Content of the message, in parts.
        input: Vec<Input>,
    },
    /// Instructions of the agent's developer.
    Developer {
        /// Text of the instructions.
        text: String,
    },
    /// Text for the model that is neither the user's nor its own.
    Note {
        /// Text of the note.
        text: String,
    },
    /// A message of an agent.
    Assistant {
        /// Text of the message.
        text: String,
    },
    /// A tool call of a model.
    Call(ToolCall),
    /// Output of a tool call.
    Output {
        /// Id of the call.
        call: String,
        /// Output for the model.
        output: Output,
    },
}

impl InjectedItem {
    /// Returns the length of its text for the model, in bytes.
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
