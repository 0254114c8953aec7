//! What a user can hand to a turn: text, images, audio, skills and mentions, with context beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

tagged! {
    /// One part of a user's message.
    pub enum UserInput by "type" {
        /// Text.
        Text(TextUserInput) = "text",
        /// An image sent along.
        Image(ImageUserInput) = "image",
        /// An image file the server reads.
        LocalImage(LocalImageUserInput) = "localImage",
        /// A sound sent along.
        Audio(AudioUserInput) = "audio",
        /// A sound file the server reads.
        LocalAudio(LocalAudioUserInput) = "localAudio",
        /// A skill the user picked.
        Skill(SkillUserInput) = "skill",
        /// Something the user pointed at by name, such as an app or a plugin.
        Mention(MentionUserInput) = "mention",
    }
}

/// Text from the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextUserInput {
    /// The text. All text of one `turn/start` or `turn/steer` together may have 1,048,576 characters.
    pub text: String,
    /// Stretches of the text that the client shows in a special way. Defaults to none.
    #[serde(rename = "text_elements")]
    #[serde(default, deserialize_with = "null_as_default")]
    pub text_elements: Vec<TextElement>,
}

/// An image sent along with the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUserInput {
    /// How finely the model should look; null leaves it to the model.
    pub detail: Option<ImageDetail>,
    /// Where the image is.
    #[serde(flatten)]
    pub image: InputImage,
}

/// Where an image of a message is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum InputImage {
    /// At an address.
    Url {
        /// The image as a `data:` URL in base64: PNG, JPEG, GIF or WebP. All images of one `turn/start` or
        /// `turn/steer` together may have 10 MiB.
        url: String,
    },
    /// In a stored file.
    #[serde(rename_all = "camelCase")]
    File {
        /// The file's id.
        file_id: String,
    },
}

/// An image file on the server's machine, read when the input is accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalImageUserInput {
    /// Where the file is.
    pub path: String,
    /// How finely the model should look; null leaves it to the model.
    pub detail: Option<ImageDetail>,
}

/// A sound sent along with the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AudioUserInput {
    /// Where the sound is, usually a `data:` URL holding it.
    pub url: String,
}

/// A sound file on the server's machine, read when the turn takes it up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalAudioUserInput {
    /// Where the file is.
    pub path: String,
}

/// A skill the user picked; its instructions go to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillUserInput {
    /// The skill's name, as `skills/list` gives it.
    pub name: String,
    /// The skill's file, as `skills/list` gives it.
    pub path: String,
}

/// Something the user pointed at by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MentionUserInput {
    /// The name as shown to the user.
    pub name: String,
    /// What the name stands for: a path or an address.
    pub path: String,
}

/// Something the client adds to a turn beside the user's message.
/// `additionalContext` of `turn/start` and `turn/steer` holds these by source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdditionalContextEntry {
    /// Whether the model should trust it.
    pub kind: AdditionalContextKind,
    /// The text the model reads.
    pub value: String,
    /// What to call it before the model if it is untrusted; null for no name.
    pub name: Option<String>,
}

/// A stretch of text that the client shows in a special way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextElement {
    /// Which bytes of the text it covers.
    pub byte_range: ByteRange,
    /// What to show in their place; null to show the text itself.
    pub placeholder: Option<String>,
}

open_enum! {
    /// How finely the model should look at an image. More detail costs more tokens.
    pub enum ImageDetail {
        /// As the model sees fit.
        Auto = "auto",
        /// Coarsely.
        Low = "low",
        /// Finely.
        High = "high",
        /// At full size, not scaled down.
        Original = "original",
    }
}

open_enum! {
    /// Where added context comes from, and so how far to trust it.
    pub enum AdditionalContextKind {
        /// From outside: information for the model, never instructions.
        Untrusted = "untrusted",
        /// From the client itself.
        Application = "application",
    }
}

/// A range of bytes in a text encoded as UTF-8.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ByteRange {
    /// The first byte after the range.
    pub end: u64,
    /// The first byte of the range, counted from 0.
    pub start: u64,
}
