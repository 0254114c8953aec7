//! `view_image`: shows an image to the model.

use std::path::Path;

use raddle_core::ImageHeader;
use raddle_core::ports::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use super::error::ToolError;
use super::open::contents;
use super::roots::{ResolvedPath, Roots};
use super::walk::FinalLink;

const BYTES_MAX: u64 = 8 << 20;

/// Arguments of the tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewImage {
    /// Path of the file.
    pub path: String,
}

/// An image that a model can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// Path, as an item shows it.
    pub path: String,
    /// Media type, such as `image/png`.
    pub media_type: &'static str,
    /// Contents of the file.
    pub bytes: Vec<u8>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl ViewImage {
    /// Returns the specification for the model.
    pub fn spec() -> ToolSpec {
        ToolSpec {
            name: "view_image".to_owned(),
            description: "Shows a picture that is a file here: PNG, JPEG, GIF or WebP.".to_owned(),
            freeform: None,
            schema: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the working directory, or absolute."}
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        }
    }

    /// Reads and checks the image.
    pub fn run(&self, roots: &Roots) -> Result<ImageFile, ToolError> {
        self.run_at(
            roots,
            &roots.resolve(Path::new(&self.path), FinalLink::Follow)?,
        )
    }

    pub(crate) fn run_at(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
    ) -> Result<ImageFile, ToolError> {
        let (file, stat) = roots.open(resolved)?;
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let path = resolved.shown.clone();
        if bytes > BYTES_MAX {
            let max = BYTES_MAX;
            return Err(ToolError::TooLarge { path, bytes, max });
        }
        let bytes = contents(file, &stat, &resolved.shown)?.bytes;
        let shown = path.display();
        let Some(header) = ImageHeader::read(&bytes) else {
            let why = format!("{shown} is no PNG, JPEG, GIF or WebP picture");
            return Err(ToolError::Arguments(why));
        };
        if let Some(why) = header.objection() {
            return Err(ToolError::Arguments(format!("{shown} is {why}")));
        }
        Ok(ImageFile {
            path: shown.to_string(),
            media_type: header.media,
            bytes,
            width: header.width,
            height: header.height,
        })
    }
}
