//! `edit_file`: replaces a text in a file.

use std::path::Path;

use raddle_core::ports::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use super::change::{ChangePlan, Draft};
use super::error::ToolError;
use super::roots::Roots;
use super::walk::FinalLink;

/// Arguments of the tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// Path of the file.
    pub path: String,
    /// Text to replace, as it is in the file.
    pub old: String,
    /// Text that replaces it.
    pub new: String,
    /// Whether all occurrences are replaced.
    #[serde(default)]
    pub all: bool,
}

impl EditFile {
    /// Returns the specification for the model.
    pub fn spec() -> ToolSpec {
        ToolSpec {
            name: "edit_file".to_owned(),
            description: "Puts one text in place of another in a file. The old text must stand there exactly, and only once unless `all` is set.".to_owned(),
            freeform: None,
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the working directory, or absolute."},
                    "old": {"type": "string", "description": "The text to replace, exactly, with enough around it to be unique."},
                    "new": {"type": "string", "description": "The text to put there."},
                    "all": {"type": "boolean", "description": "Replaces it wherever it stands."}
                },
                "required": ["path", "old", "new"],
                "additionalProperties": false
            }),
        }
    }

    /// Plans the change without writing; an error tells the model why the text cannot be replaced.
    pub fn plan(&self, roots: &Roots) -> Result<ChangePlan, ToolError> {
        let refuse = |why: String| Err(ToolError::Arguments(why));
        if self.old.is_empty() {
            return refuse("`old` is empty; use write_file for a new file".to_owned());
        }
        if self.old == self.new {
            return refuse("nothing to change: `old` and `new` are the same text".to_owned());
        }
        let mut draft = Draft::new(roots);
        let index = draft.look(Path::new(&self.path), FinalLink::Follow)?;
        let text = draft.text(index)?;
        let (mut old, mut new) = (self.old.clone(), self.new.clone());
        // A model writes plain newlines, whatever the file has.
        if !text.contains(&old) && text.contains("\r\n") {
            old = with_returns(&old);
            new = with_returns(&new);
        }
        let path = draft.shown(index).display();
        let count = text.matches(&old).count();
        match count {
            0 => {
                return refuse(format!(
                    "the old text is not in {path}; read the file and copy it exactly"
                ));
            }
            1 => {}
            _ if self.all => {}
            _ => {
                return refuse(format!(
                    "the old text stands {count} times in {path}; give more of what is around it, or set `all`"
                ));
            }
        }
        // The result may have any size, so it is checked before it is built.
        let unchanged_bytes = text.len() - count * old.len();
        let bytes = count
            .saturating_mul(new.len())
            .saturating_add(unchanged_bytes);
        draft.refuse_too_large(index, bytes)?;
        let text = text.replace(&old, &new);
        draft.put(index, text)?;
        draft.finish()
    }
}

fn with_returns(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}
