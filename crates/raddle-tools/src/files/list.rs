//! `list_files`: lists a folder.

use std::path::Path;
use std::time::{Duration, Instant};

use globset::{Error, Glob, GlobBuilder, GlobSet};
use raddle_core::ports::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ToolError;
use super::roots::{ResolvedPath, Roots};
use super::tree::{self, TreeEntry, WalkEnd, WalkLimits};
use super::walk::{FinalLink, Kind};

const ENTRIES_MAX: usize = 1_000;
const BYTES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 64;
const TIME_MAX: Duration = Duration::from_secs(10);

/// Arguments of the tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListFiles {
    /// The folder; by default the thread's own.
    #[serde(default)]
    pub path: Option<String>,
    /// Number of folder levels to list.
    #[serde(default)]
    pub depth: Option<usize>,
    /// A glob that the paths must match.
    #[serde(default)]
    pub pattern: Option<String>,
}

impl ListFiles {
    /// Returns the specification for the model.
    pub fn spec() -> ToolSpec {
        ToolSpec {
            name: "list_files".to_owned(),
            description: "Lists what is in a folder and below it, without what .gitignore leaves out. Folders end with a slash. At most 1000 entries come at once.".to_owned(),
            freeform: None,
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The folder; the working directory if left out."},
                    "depth": {"type": "integer", "minimum": 1, "maximum": DEPTH_MAX, "description": "How many levels; 2 if left out, all with a pattern."},
                    "pattern": {"type": "string", "description": "Lists only files whose path below the folder matches this glob, such as `**/*.rs`."}
                },
                "additionalProperties": false
            }),
        }
    }

    /// Returns the entries, one per line, and a note if there are more.
    pub fn run(&self, roots: &Roots) -> Result<String, ToolError> {
        let path = self.path.as_deref().unwrap_or(".");
        self.run_at(roots, &roots.resolve(Path::new(path), FinalLink::Follow)?)
    }

    pub(crate) fn run_at(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
    ) -> Result<String, ToolError> {
        let mut text = String::new();
        let is_whole = self.visit(roots, resolved, &mut |path, entry| {
            text.push_str(path);
            text.push_str(if entry.is_folder { "/\n" } else { "\n" });
        })?;
        match is_whole {
            true if text.is_empty() => text.push_str("[nothing]\n"),
            true => {}
            false => text.push_str(
                "[more was left out; name a deeper folder, or a pattern that matches less]\n",
            ),
        }
        Ok(text)
    }

    /// Returns the entries for a plugin.
    pub(crate) fn entries_at(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
    ) -> Result<Value, ToolError> {
        let mut entries = Vec::new();
        let is_whole = self.visit(roots, resolved, &mut |path, entry| {
            let kind = match entry {
                TreeEntry {
                    is_folder: true, ..
                } => "folder",
                TreeEntry { is_file: true, .. } => "file",
                _ => "other",
            };
            entries.push(json!({ "path": path, "kind": kind }));
        })?;
        Ok(json!({
            "path": roots.brief(&resolved.shown),
            "entries": entries,
            "truncated": !is_whole,
        }))
    }

    /// Passes on each entry with its path for the caller. Returns false if entries were left out.
    fn visit(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
        visit: &mut dyn FnMut(&str, &TreeEntry),
    ) -> Result<bool, ToolError> {
        roots.readable(resolved)?;
        match resolved.kind {
            Kind::Folder => {}
            Kind::Missing => return Err(ToolError::Missing(resolved.shown.clone())),
            _ => return Err(ToolError::NotFolder(resolved.shown.clone())),
        }
        let glob = self.pattern.as_deref().map(glob).transpose()?;
        let depth = if glob.is_some() { DEPTH_MAX } else { 2 };
        let limits = WalkLimits {
            depth: self.depth.unwrap_or(depth).clamp(1, DEPTH_MAX),
            until: Instant::now() + TIME_MAX,
        };
        let (mut count, mut bytes) = (0, 0);
        let end = tree::walk(roots, resolved, &limits, &mut |entry| {
            let is_match = match &glob {
                None => true,
                Some(glob) => !entry.is_folder && glob.is_match(&entry.path),
            };
            if !is_match {
                return true;
            }
            if count == ENTRIES_MAX || bytes > BYTES_MAX {
                return false;
            }
            let path = roots.brief(&resolved.shown.join(&entry.path));
            count += 1;
            bytes += path.len() + 1;
            visit(&path, entry);
            true
        });
        Ok(end == WalkEnd::Everything)
    }
}

/// Limit: a glob of a tool; beyond it, the call fails with the reason.
///
/// The compiled form grows with it, and a glob above some size cannot be compiled.
pub(super) const GLOB_BYTES_MAX: usize = 1_000;

/// Compiles a glob. Without a slash it matches names at any depth.
pub(super) fn glob(pattern: &str) -> Result<GlobSet, ToolError> {
    if pattern.len() > GLOB_BYTES_MAX {
        let why = format!(
            "the glob has {} bytes, more than {GLOB_BYTES_MAX}; use several shorter ones",
            pattern.len()
        );
        return Err(ToolError::Arguments(why));
    }
    let anywhere = format!("**/{pattern}");
    let pattern = match pattern.contains('/') {
        true => pattern.strip_prefix("./").unwrap_or(pattern),
        false => &anywhere,
    };
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    // A matcher of a single glob panics if no regex can be built from it, as for many nested
    // braces.
    let set = |glob: Glob| GlobSet::builder().add(glob).build();
    glob.and_then(set).map_err(|error: Error| {
        ToolError::Arguments(format!("`{pattern}` is no glob: {}", error.kind()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_limited_in_length() {
        assert!(glob("src/**/*.{rs,toml}").is_ok());
        let nested = format!("{}a{}", "{".repeat(300), "}".repeat(300));
        let error = glob(&nested).expect_err("too deep");
        assert!(error.to_string().contains("is no glob"), "{error}");
        for unit in ["[!a]", "{a,b}", "**/", "?", "*", "{"] {
            let text = unit.repeat(GLOB_BYTES_MAX / unit.len());
            // The result does not matter, as long as it does not panic.
            let _ = glob(&text);
            let error = glob(&unit.repeat(300_000)).expect_err("too long");
            assert!(error.to_string().contains("more than 1000"), "{error}");
        }
    }
}
