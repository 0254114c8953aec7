//! `view_image`: a picture for the model.

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

/// What it is asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewImage {
    /// Which file.
    pub path: String,
}

/// A picture that may be shown to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// As an item shows it.
    pub path: String,
    /// Such as `image/png`.
    pub media_type: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

impl ViewImage {
    /// What a model is told of it.
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

    /// The picture.
    pub fn run(&self, roots: &Roots) -> Result<ImageFile, ToolError> {
        self.run_at(
            roots,
            &roots.resolve(Path::new(&self.path), FinalLink::Follow)?,
        )
    }

    pub(crate) fn run_at(
        &self,
        roots: &Roots,
        spot: &ResolvedPath,
    ) -> Result<ImageFile, ToolError> {
        let (file, stat) = roots.open(spot)?;
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let path = spot.shown.clone();
        if bytes > BYTES_MAX {
            let max = BYTES_MAX;
            return Err(ToolError::TooLarge { path, bytes, max });
        }
        let bytes = contents(file, &stat, &spot.shown)?.bytes;
        let shown = path.display();
        let Some(head) = ImageHeader::read(&bytes) else {
            let why = format!("{shown} is no PNG, JPEG, GIF or WebP picture");
            return Err(ToolError::Arguments(why));
        };
        if let Some(why) = head.objection() {
            return Err(ToolError::Arguments(format!("{shown} is {why}")));
        }
        Ok(ImageFile {
            path: shown.to_string(),
            media_type: head.media,
            bytes,
            width: head.width,
            height: head.height,
        })
    }
}
