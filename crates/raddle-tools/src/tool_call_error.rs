//! Error of a tool call, worded so that a model can act on it.

use std::fmt;

/// Reason why a call was not carried out, as text for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ToolCallError(String);

impl ToolCallError {
    pub(crate) fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string())
    }
}
