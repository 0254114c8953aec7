//! Rejects arrays in the place of objects. Serde also reads a derived type from an array, by the
//! order of its members, which no client intends. The check serialises the parsed params and
//! compares shapes: an array where the serialised form has an object is rejected.

use raddle_rpc::marks::Marks;
use serde::Serialize;

use super::shape::{PathSegment, Shape, ShapeBuilder};
use crate::wire_error::{WireError, quoted};

/// Rejects params in which an array stands for an object, and says where.
pub(super) fn check<P: Serialize>(text: &str, params: &P) -> Result<(), WireError> {
    // Most params have no array in them.
    if !Marks::of(text).any(|mark| mark == b'[') {
        return Ok(());
    }
    let received = Shape::of(text);
    // The text may be long, so only its shape is kept.
    let mut parsed = ShapeBuilder::default();
    serde_json::to_writer(&mut parsed, params)
        .map_err(|error| WireError::InvalidRequest(error.to_string()))?;
    let mut path = Vec::new();
    if let (Some(received), Some(parsed)) = (received, parsed.done())
        && differ(&received, &parsed, &mut path)
    {
        path.reverse();
        let path = path.concat();
        let location = path.trim_start_matches('.');
        let what = format!("{location}: expected an object, not an array");
        return Err(WireError::InvalidRequest(what));
    }
    Ok(())
}

/// Whether an array was received where an object was parsed. Writes the path to it, innermost
/// first.
fn differ(received: &Shape, parsed: &Shape, path: &mut Vec<String>) -> bool {
    if received.is_object != parsed.is_object {
        return parsed.is_object;
    }
    let mut pairs = received
        .inside()
        .filter_map(|(segment, received)| Some((segment, received, parsed.at(segment)?)));
    let mismatch = pairs.find(|(_, received, parsed)| differ(received, parsed, path));
    path.extend(mismatch.map(|(segment, ..)| match segment {
        PathSegment::Index(index) => format!("[{index}]"),
        PathSegment::Key(key) => format!(".{}", quoted(key)),
    }));
    mismatch.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_protocol::{ConfigBatchWriteParams, InitializeParams};

    fn problem<P: Serialize + serde::de::DeserializeOwned>(text: &str) -> Option<String> {
        let params: P = serde_json::from_str(text).expect("what serde reads");
        match check(text, &params) {
            Err(WireError::InvalidRequest(what)) => Some(what),
            other => other.err().map(|error| format!("{error:?}")),
        }
    }

    #[test]
    fn an_array_is_no_object() {
        for (text, location) in [
            (r#"{"clientInfo": ["a", "1", null]}"#, "clientInfo"),
            (
                r#"{"clientInfo": {"name": "a", "version": "1"}, "capabilities": [true, false, null, false, null, false]}"#,
                "capabilities",
            ),
        ] {
            let expected = format!("{location}: expected an object, not an array");
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
