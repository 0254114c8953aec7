//! Arrays in the place of objects. A derived type is also read from an array, by the order of its
//! members, which no client means. What was read is written again and held against what came: where an
//! array came and an object is written, it is refused.

use serde::Serialize;

use super::marks::Marks;
use super::shape::{PathSegment, Shape, ShapeBuilder};
use crate::wire_error::shown;

/// Refuses params in which an array stands for an object, and says where.
pub(super) fn check<P: Serialize>(text: &str, params: &P) -> Result<(), String> {
    // Most params have no array in them, and then there is nothing to do.
    if !Marks::of(text).any(|mark| mark == b'[') {
        return Ok(());
    }
    let came = Shape::of(text);
    // Never kept as a text, which may be long.
    let mut read = ShapeBuilder::default();
    serde_json::to_writer(&mut read, params).map_err(|error| error.to_string())?;
    let mut path = Vec::new();
    if let (Some(came), Some(read)) = (came, read.done())
        && differ(&came, &read, &mut path)
    {
        path.reverse();
        let path = path.concat();
        let place = path.trim_start_matches('.');
        return Err(format!("{place}: expected an object, not an array"));
    }
    Ok(())
}

/// Whether an array came where an object was read. The path is that of the place, innermost first.
fn differ(came: &Shape, read: &Shape, path: &mut Vec<String>) -> bool {
    if came.is_object != read.is_object {
        return read.is_object;
    }
    let mut pairs = came
        .inside()
        .filter_map(|(place, came)| Some((place, came, read.at(place)?)));
    let found = pairs.find(|(_, came, read)| differ(came, read, path));
    path.extend(found.map(|(place, ..)| match place {
        PathSegment::Index(index) => format!("[{index}]"),
        PathSegment::Key(key) => format!(".{}", shown(key)),
    }));
    found.is_some()
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
