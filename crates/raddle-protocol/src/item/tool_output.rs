//! What a tool gave back, in the form in which model providers take it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::*;

/// A tool's output: plain text, or parts of several kinds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FunctionCallOutputBody {
    /// Text.
    Text(String),
    /// Parts, in the order the model reads them.
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
        /// Text.
        InputText(InputTextFunctionCallOutputContentItem) = "input_text",
        /// An image.
        InputImage(InputImageFunctionCallOutputContentItem) = "input_image",
        /// A sound.
        InputAudio(InputAudioFunctionCallOutputContentItem) = "input_audio",
        /// Something only the provider can read.
        EncryptedContent(EncryptedContentFunctionCallOutputContentItem) = "encrypted_content",
    }
}

/// Text in a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputTextFunctionCallOutputContentItem {
    /// The text.
    pub text: String,
}

/// An image in a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputImageFunctionCallOutputContentItem {
    /// How finely the model should look; null leaves it to the model.
    pub detail: Option<ImageDetail>,
    /// Where the image is.
    #[serde(flatten)]
    pub image: FunctionCallOutputImage,
}

/// Where an image of a tool's output is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FunctionCallOutputImage {
    /// At an address, usually a `data:` URL that holds it.
    Url {
        /// The address.
        image_url: String,
    },
    /// In a stored file.
    File {
        /// The file's id.
        file_id: String,
    },
}

/// A sound in a tool's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InputAudioFunctionCallOutputContentItem {
    /// Where the sound is, usually a `data:` URL that holds it.
    pub audio_url: String,
}

/// A part of a tool's output that only the provider can read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EncryptedContentFunctionCallOutputContentItem {
    /// The sealed text, passed on as it came.
    pub encrypted_content: String,
}
