//! `write_file`: writes a whole file.

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
pub struct WriteFile {
    /// Path of the file.
    pub path: String,
    /// Contents of the whole file after the call.
    pub content: String,
}

impl WriteFile {
    /// Returns the specification for the model.
    pub fn spec() -> ToolSpec {
        ToolSpec {
            name: "write_file".to_owned(),
            description: "Writes a whole file, and makes the folders around it. What was in it before is replaced."
                .to_owned(),
            freeform: None,
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the working directory, or absolute."},
                    "content": {"type": "string", "description": "The whole content."}
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
        }
    }

    /// Plans the change without writing.
    pub fn plan(&self, roots: &Roots) -> Result<ChangePlan, ToolError> {
        let mut draft = Draft::new(roots);
        let index = draft.look(Path::new(&self.path), FinalLink::Follow)?;
        draft.put(index, self.content.clone())?;
        draft.finish()
    }
}
