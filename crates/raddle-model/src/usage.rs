//! What an answer cost, as vendors write it.

use serde_json::Value;

/// A number of tokens. Nothing if it is none: the answer is there, whatever is said of its price.
pub(crate) fn count(member: &Value) -> Option<u64> {
    match member {
        Value::Null => Some(0),
        // Some vendors write whole numbers as fractions.
        Value::Number(it) => it.as_u64().or_else(|| it.as_f64().map(|it| it as u64)),
        _ => None,
    }
}
