//! Input of the user to a turn: text, images, audio, skills and mentions, and additional context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

tagged! {
    /// One part of a user's message.
    pub enum UserInput by "type" {
        /// Text of the user.
        Text(TextUserInput) = "text",
        /// An image attached to the message.
        Image(ImageUserInput) = "image",
        /// An image file the server reads.
        LocalImage(LocalImageUserInput) = "localImage",
        /// Audio attached to the message.
        Audio(AudioUserInput) = "audio",
        /// An audio file the server reads.
        LocalAudio(LocalAudioUserInput) = "localAudio",
        /// A skill the user picked.
        Skill(SkillUserInput) = "skill",
        /// A named reference of the user, such as to an app or a plugin.
        Mention(MentionUserInput) = "mention",
    }
}

/// Text from the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextUserInput {
    /// Text of the user. All text of one `turn/start` or `turn/steer` together may have 1,048,576
    /// characters.
    pub text: String,
    /// Ranges of the text that the client displays in a special way. Defaults to none.
    #[serde(rename = "text_elements")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub text_elements: Vec<TextElement>,
}

/// An image attached to the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUserInput {
    /// Resolution at which the model views the image; null uses the model's default.
    pub detail: Option<ImageDetail>,
    /// Location of the image.
    #[serde(flatten)]
    pub image: InputImage,
}

/// Location of an image in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum InputImage {
    /// The image is at a URL.
    Url {
        /// Image as a `data:` URL in base64: PNG, JPEG, GIF or WebP. All images of one `turn/start`
        /// or `turn/steer` together may have 10 MiB.
        url: String,
    },
    /// The image is in a stored file.
    #[serde(rename_all = "camelCase")]
    File {
        /// Id of the stored file.
        file_id: String,
    },
}

/// An image file on the server's machine, read when the input is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalImageUserInput {
    /// Path of the image file.
    pub path: String,
    /// Resolution at which the model views the image; null uses the model's default.
    pub detail: Option<ImageDetail>,
}

/// Audio attached to the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AudioUserInput {
    /// URL of the audio, usually a `data:` URL.
    pub url: String,
}

/// An audio file on the server's machine, read when the turn processes the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalAudioUserInput {
    /// Path of the audio file.
    pub path: String,
}

/// A skill the user picked; its instructions are sent to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillUserInput {
    /// Name of the skill, as in `skills/list`.
    pub name: String,
    /// Path of the skill's file, as in `skills/list`.
    pub path: String,
}

/// A named reference of the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MentionUserInput {
    /// Name as displayed to the user.
    pub name: String,
    /// Target of the reference: a path or a URL.
    pub path: String,
}

/// Context that the client adds to a turn beside the user's message. `additionalContext` of
/// `turn/start` and `turn/steer` holds these entries by source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalContextEntry {
    /// Whether the model should trust the text.
    pub kind: AdditionalContextKind,
    /// The text the model reads.
    pub value: String,
    /// Name of untrusted text for the model; null for no name.
    pub name: Option<String>,
}

/// A range of text that the client displays in a special way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextElement {
    /// Bytes of the text that the element covers.
    pub byte_range: ByteRange,
    /// Text to display instead; null displays the text itself.
    pub placeholder: Option<String>,
}

open_enum! {
    /// Resolution at which the model views an image. Higher resolutions cost more tokens.
    pub enum ImageDetail {
        /// The model decides.
        Auto = "auto",
        /// Low resolution, with few tokens.
        Low = "low",
        /// High resolution, with more tokens.
        High = "high",
        /// Original size, not scaled down.
        Original = "original",
    }
}

open_enum! {
    /// Source of additional context, and so its trust level.
    pub enum AdditionalContextKind {
        /// External information for the model, never instructions.
        Untrusted = "untrusted",
        /// Text of the client itself.
        Application = "application",
    }
}

/// A range of bytes in a text encoded as UTF-8.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByteRange {
    /// End of the range, exclusive.
    pub end: u64,
    /// Start of the range, counted from 0.
    pub start: u64,
}
