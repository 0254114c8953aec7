//! Parses the arguments of a tool call.

use std::fmt::Display;

use raddle_core::ToolCall;
use serde::de::DeserializeOwned;

use crate::tool_call_error::ToolCallError;

/// Parses the arguments as `T`, or returns the error text for the model.
pub(crate) fn read<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolCallError> {
    let name = &call.tool;
    let invalid = |why: &dyn Display| {
        ToolCallError::new(format!(
            "The tool {name} was not called, because its arguments cannot be read: {why}. Call it again with a \
             JSON object that fits its schema."
        ))
    };
    if call.freeform {
        return Err(invalid(&"they are text and no JSON"));
    }
    let object = call.object().map_err(|error| invalid(&error))?;
    serde_json::from_value(object).map_err(|error| invalid(&error))
}
