//! Output of a tool, in the form that model providers accept.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::*;

/// A tool's output: plain text, or parts of several kinds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FunctionCallOutputBody {
    /// Output as plain text.
    Text(String),
    /// Output as parts, in the order the model reads them.
    Parts(Vec<FunctionCallOutputContentItem>),
}

impl<'de> Deserialize<'de> for FunctionCallOutputBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match text_or(deserializer)? {
            TextOr::Text(text) => Self::Text(text),
            TextOr::Other(parts) => Self::Parts(parts),
        })
    }
}

tagged! {
    /// One part of a tool's output. Names are in snake_case on the wire.
    pub enum FunctionCallOutputContentItem by "type" {
        /// Text for the model.
        InputText(InputTextFunctionCallOutputContentItem) = "input_text",
        /// An image for the model.
        InputImage(InputImageFunctionCallOutputContentItem) = "input_image",
        /// Audio for the model.
        InputAudio(InputAudioFunctionCallOutputContentItem) = "input_audio",
        /// Encrypted content that only the provider can read.
        EncryptedContent(EncryptedContentFunctionCallOutputContentItem) = "encrypted_content",
    }
}

/// Text in a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputTextFunctionCallOutputContentItem {
    /// Text for the model.
    pub text: String,
}

/// An image in a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputImageFunctionCallOutputContentItem {
    /// Resolution at which the model views the image; null uses the model's default.
    pub detail: Option<ImageDetail>,
    /// Location of the image.
    #[serde(flatten)]
    pub image: FunctionCallOutputImage,
}

/// Location of an image in a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FunctionCallOutputImage {
    /// The image is at a URL, usually a `data:` URL.
    Url {
        /// URL of the image.
        image_url: String,
    },
    /// The image is in a stored file.
    File {
        /// Id of the stored file.
        file_id: String,
    },
}

/// Audio in a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputAudioFunctionCallOutputContentItem {
    /// URL of the audio, usually a `data:` URL.
    pub audio_url: String,
}

/// A part of a tool's output that only the provider can read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EncryptedContentFunctionCallOutputContentItem {
    /// Encrypted text, passed on unchanged.
    pub encrypted_content: String,
}
