//! Usage figures of vendors.

use serde_json::Value;

/// Parses a number of tokens; `None` if it is malformed, because the answer is valid all the same.
pub(crate) fn count(member: &Value) -> Option<u64> {
    match member {
        Value::Null => Some(0),
        // Some vendors send whole numbers as fractions.
        Value::Number(it) => it.as_u64().or_else(|| it.as_f64().map(|it| it as u64)),
        _ => None,
    }
}
