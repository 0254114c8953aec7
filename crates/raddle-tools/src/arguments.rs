//! Parses the arguments of a tool call.

use raddle_core::ToolCall;
use serde::de::DeserializeOwned;

/// Parses the arguments as `T`, or returns the error text for the model.
pub(crate) fn read<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    let name = &call.tool;
    let invalid = |why: String| {
        format!(
            "The tool {name} was not called, because its arguments cannot be read: {why}. Call it again with a \
             JSON object that fits its schema."
        )
    };
    if call.freeform {
        return Err(invalid("they are text and no JSON".to_owned()));
    }
    let object = call.object().map_err(invalid)?;
    serde_json::from_value(object).map_err(|error| invalid(error.to_string()))
}
