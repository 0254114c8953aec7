//! The arguments of a call, read as its tool takes them.

use raddle_core::ToolCall;
use serde::de::DeserializeOwned;

/// The arguments as this type, or what the model is told is wrong with them.
pub(crate) fn read<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    let name = &call.tool;
    let wrong = |why: String| {
        format!(
            "The tool {name} was not called, because its arguments cannot be read: {why}. Call it again with a \
             JSON object that fits its schema."
        )
    };
    if call.freeform {
        return Err(wrong("they are text and no JSON".to_owned()));
    }
    let object = call.object().map_err(wrong)?;
    serde_json::from_value(object).map_err(|error| wrong(error.to_string()))
}
