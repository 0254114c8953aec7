//! `read_file`: reads lines of a file.

use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use raddle_core::ports::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use super::error::ToolError;
use super::roots::{ResolvedPath, Roots};
use super::walk::FinalLink;

/// Limit: lines that `read_file` returns (`list_files` and `search_files` return 1,000 entries;
/// each at most 50,000 bytes); beyond it, the rest is left out, and the model reads how to
/// continue.
const LINES_MAX: usize = 2_000;
const BYTES_MAX: usize = 50_000;

/// Longer lines are truncated.
const LINE_BYTES_MAX: usize = 2_000;

/// Maximum bytes that one call scans.
const LOOKED_BYTES_MAX: u64 = 64 << 20;

/// Arguments of the tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Path of the file.
    pub path: String,
    /// First line, counted from one.
    #[serde(default)]
    pub offset: Option<usize>,
    /// Maximum number of lines.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Whether line numbers are shown.
    #[serde(default)]
    pub numbers: bool,
}

impl ReadFile {
    /// Returns the specification for the model.
    pub fn spec() -> ToolSpec {
        ToolSpec {
            name: "read_file".to_owned(),
            description: "Reads lines of a text file. At most 2000 lines and 50 KB come at once; where the rest begins is said at the end.".to_owned(),
            freeform: None,
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the working directory, or absolute."},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line to read, counted from 1."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": LINES_MAX, "description": "How many lines to read."},
                    "numbers": {"type": "boolean", "description": "Puts the number of each line in front of it."}
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        }
    }

    /// Returns the lines, and a note if there are more.
    pub fn run(&self, roots: &Roots) -> Result<String, ToolError> {
        self.run_at(
            roots,
            &roots.resolve(Path::new(&self.path), FinalLink::Follow)?,
        )
    }

    pub(crate) fn run_at(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
    ) -> Result<String, ToolError> {
        let (file, _) = roots.open(resolved)?;
        let disk_error = |source| ToolError::Disk {
            path: resolved.shown.clone(),
            source,
        };
        let first = self.offset.unwrap_or(1).max(1);
        let count = self.limit.unwrap_or(LINES_MAX).clamp(1, LINES_MAX);
        let mut reader = BufReader::new(file.take(LOOKED_BYTES_MAX));
        let mut text = String::new();
        let (mut number, mut is_truncated) = (0, false);
        while let Some(line) = ShownLine::next(&mut reader).map_err(disk_error)? {
            if line.is_binary {
                return Err(ToolError::Binary(resolved.shown.clone()));
            }
            number += 1;
            if number < first {
                continue;
            }
            if number >= first + count || text.len() + line.shown.len() > BYTES_MAX {
                text.push_str(&format!("[more follows; go on with offset {number}]\n"));
                is_truncated = true;
                break;
            }
            if self.numbers {
                text.push_str(&format!("{number:>6}\t"));
            }
            line.push_to(&mut text);
        }
        if !is_truncated && reader.get_ref().limit() == 0 {
            text.push_str("[more follows than this tool looks at; use a command]\n");
        } else if number < first && number > 0 {
            let why = format!("{} has only {number} lines", resolved.shown.display());
            return Err(ToolError::Arguments(why));
        } else if number == 0 {
            text.push_str("[the file is empty]\n");
        }
        Ok(text)
    }
}

/// A line, truncated to the part that is shown, to bound memory.
struct ShownLine {
    shown: Vec<u8>,
    bytes: usize,
    is_binary: bool,
}

impl ShownLine {
    fn next(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = Self {
            shown: Vec::new(),
            bytes: 0,
            is_binary: false,
        };
        loop {
            let piece = reader.fill_buf()?;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let consumed = end.map_or(piece.len(), |end| end + 1);
            let piece = &piece[..consumed];
            let capacity = LINE_BYTES_MAX - line.shown.len();
            line.shown
                .extend_from_slice(&piece[..capacity.min(consumed)]);
            line.bytes += consumed;
            line.is_binary |= piece.contains(&0);
            reader.consume(consumed);
            if end.is_some() || consumed == 0 {
                return Ok((line.bytes > 0).then_some(line));
            }
        }
    }

    fn push_to(&self, text: &mut String) {
        let shown = String::from_utf8_lossy(&self.shown);
        match self.bytes > self.shown.len() {
            false => text.push_str(&shown),
            true => {
                text.push_str(shown.trim_end_matches(char::REPLACEMENT_CHARACTER));
                text.push_str(&format!(" [… of {} bytes]\n", self.bytes));
            }
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
}
