//! Arrays in the place of objects. A derived type is also read from an array, by the order of its
//! members, which no client means. What was read is written again and held against what came: where an
//! array came and an object is written, it is refused.

use serde::Serialize;
use serde_json::Value;

/// Refuses params in which an array stands for an object, and says where.
pub(super) fn check<P: Serialize>(text: &str, params: &P) -> Result<(), String> {
    // Most params have no array in them, and then there is nothing to do.
    if !has_array(text) {
        return Ok(());
    }
    // A member nobody reads may still hold a number or a string that no value can hold.
    let came = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let read = serde_json::to_value(params).map_err(|error| error.to_string())?;
    let mut path = Vec::new();
    if differ(&came, &read, &mut path) {
        path.reverse();
        let path = path.concat();
        let place = path.trim_start_matches('.');
        return Err(format!("{place}: expected an object, not an array"));
    }
    Ok(())
}

/// Whether the text has an array, as far as its brackets outside of strings tell.
fn has_array(text: &str) -> bool {
    if !text.contains('[') {
        return false;
    }
    let mut in_string = false;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => drop(bytes.next()),
            b'[' if !in_string => return true,
            _ => {}
        }
    }
    false
}

/// Whether an array came where an object was read. The path is that of the place, innermost first.
fn differ(came: &Value, read: &Value, path: &mut Vec<String>) -> bool {
    match (came, read) {
        (Value::Array(_), Value::Object(_)) => true,
        (Value::Array(came), Value::Array(read)) => {
            let mut pairs = came.iter().zip(read).enumerate();
            let found = pairs.find(|(_, (came, read))| differ(came, read, path));
            path.extend(found.map(|(index, _)| format!("[{index}]")));
            found.is_some()
        }
        (Value::Object(came), Value::Object(read)) => {
            let mut pairs = came
                .iter()
                .filter_map(|(key, came)| Some((key, came, read.get(key)?)));
            let found = pairs.find(|(_, came, read)| differ(came, read, path));
            path.extend(found.map(|(key, ..)| format!(".{key}")));
            found.is_some()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_protocol::{ConfigBatchWriteParams, InitializeParams};

    fn problem<P: Serialize + serde::de::DeserializeOwned>(text: &str) -> Option<String> {
        let params: P = serde_json::from_str(text).expect("what serde reads");
        check(text, &params).err()
    }

    #[test]
    fn an_array_is_no_object() {
        for (text, place) in [
            (r#"{"clientInfo": ["a", "1", null]}"#, "clientInfo"),
            (
                r#"{"clientInfo": {"name": "a", "version": "1"}, "capabilities": [true, false, null, false, null, false]}"#,
                "capabilities",
            ),
        ] {
            let expected = format!("{place}: expected an object, not an array");
            assert_eq!(problem::<InitializeParams>(text), Some(expected));
        }
        let edits = r#"{"edits": [{"keyPath": "a", "value": [1], "mergeStrategy": "replace"}, ["b", "replace", 1]]}"#;
        assert_eq!(
            problem::<ConfigBatchWriteParams>(edits).as_deref(),
            Some("edits[1]: expected an object, not an array")
        );
    }

    #[test]
    fn arrays_where_they_belong_are_fine() {
        for text in [
            r#"{"clientInfo": {"name": "[\"[", "version": "1"}}"#,
            r#"{"clientInfo": {"name": "a", "version": "1", "other": [1]}, "capabilities": {"optOutNotificationMethods": ["a"], "extensions": {"x": [{}]}}}"#,
        ] {
            assert_eq!(problem::<InitializeParams>(text), None);
        }
        let edits =
            r#"{"edits": [{"keyPath": "a", "value": {"b": [[1]]}, "mergeStrategy": "replace"}]}"#;
        assert_eq!(problem::<ConfigBatchWriteParams>(edits), None);
    }
}
