//! `host/workspace_read`: reads a part of a file for a plugin, byte by byte.

use std::io::{Read as _, Seek as _, SeekFrom};

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ToolError;
use super::roots::{ResolvedPath, Roots};

/// Limit: bytes of a file that one `host/workspace_read` returns; beyond it, the rest is left out,
/// and the result names where it begins.
const BYTES_MAX: u64 = 512 << 10;

/// Params of the call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadBytes {
    /// Path of the file.
    pub path: String,
    /// First byte, counted from zero.
    #[serde(default)]
    pub offset: u64,
    /// Maximum number of bytes.
    #[serde(default)]
    pub limit: Option<u64>,
}

impl ReadBytes {
    /// Returns the bytes as text, or in base64 if they are none.
    pub(crate) fn run_at(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
    ) -> Result<Value, ToolError> {
        let (mut file, stat) = roots.open(resolved)?;
        let disk_error = |source| ToolError::Disk {
            path: resolved.shown.clone(),
            source,
        };
        let limit = self.limit.unwrap_or(BYTES_MAX).clamp(1, BYTES_MAX);
        file.seek(SeekFrom::Start(self.offset))
            .map_err(disk_error)?;
        let mut bytes = Vec::new();
        // One byte more shows whether this is the end.
        let read = file.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(disk_error)?;
        let is_end = bytes.len() as u64 <= limit;
        bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        if !is_end {
            bytes.truncate(whole_characters(&bytes));
        }
        let next = self.offset + bytes.len() as u64;
        let mut result = json!({
            "path": roots.brief(&resolved.shown),
            "size": u64::try_from(stat.st_size).unwrap_or(0),
            "next_offset": (!is_end).then_some(next),
        });
        match String::from_utf8(bytes) {
            Ok(text) => result["text"] = text.into(),
            Err(error) => result["base64"] = BASE64.encode(error.as_bytes()).into(),
        }
        Ok(result)
    }
}

/// Returns the length without a last character that is cut off. Bytes that are no text stay whole.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use raddle_sandbox::Policy;

    use super::*;
    use crate::files::FinalLink;

    #[test]
    fn parts_of_a_file_are_text_or_base64() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = "ä".repeat(400 << 10);
        for (name, bytes) in [
            ("text", "aäb".as_bytes()),
            ("bytes", b"\xff\x00a".as_slice()),
            ("empty", b""),
            ("long", long.as_bytes()),
        ] {
            std::fs::write(folder.path().join(name), bytes).expect("a file");
        }
        let roots = Roots::new(folder.path(), &Policy::FullAccess).expect("roots");
        let read = |path: &str, offset, limit| {
            let call = ReadBytes {
                path: path.to_owned(),
                offset,
                limit,
            };
            let resolved = roots.resolve(Path::new(path), FinalLink::Follow);
            let mut result = call
                .run_at(&roots, &resolved.expect("a path"))
                .expect("a file");
            let path = result.as_object_mut().and_then(|it| it.remove("path"));
            assert_eq!(path, Some(call.path.into()));
            result
        };
        for (path, offset, limit, expected) in [
            (
                "text",
                0,
                None,
                json!({ "size": 4, "next_offset": null, "text": "aäb" }),
            ),
            // A character is not cut off.
            (
                "text",
                0,
                Some(2),
                json!({ "size": 4, "next_offset": 1, "text": "a" }),
            ),
            (
                "text",
                1,
                Some(2),
                json!({ "size": 4, "next_offset": 3, "text": "ä" }),
            ),
            (
                "text",
                3,
                Some(9),
                json!({ "size": 4, "next_offset": null, "text": "b" }),
            ),
            (
                "text",
                9,
                None,
                json!({ "size": 4, "next_offset": null, "text": "" }),
            ),
            // Less than one character is no text.
            (
                "text",
                1,
                Some(1),
                json!({ "size": 4, "next_offset": 2, "base64": "ww==" }),
            ),
            (
                "bytes",
                0,
                None,
                json!({ "size": 3, "next_offset": null, "base64": "/wBh" }),
            ),
            (
                "empty",
                0,
                Some(0),
                json!({ "size": 0, "next_offset": null, "text": "" }),
            ),
        ] {
            assert_eq!(
                read(path, offset, limit),
                expected,
                "{path} {offset} {limit:?}"
            );
        }
        let first = read("long", 0, Some(u64::MAX));
        let next = first["next_offset"].as_u64().expect("a next offset");
        assert_eq!(next, BYTES_MAX);
        let second = read("long", next, None);
        let text = |it: &Value| it["text"].as_str().expect("text").to_owned();
        assert_eq!(text(&first) + &text(&second), long);
        assert_eq!(second["next_offset"], Value::Null);
    }
}
