//! Items of the Responses wire. They borrow from a prompt and serialize without copies, because the
//! whole history is sent with every call.

use std::borrow::Cow;

use raddle_core::{Image, Input, Output};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A message, a call or an output.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum RequestItem<'a> {
    Message {
        role: &'static str,
        content: Parts<'a>,
        /// The phase of the answer, in the vendor's term.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: CallOutput<'a>,
    },
    CustomToolCall {
        call_id: &'a str,
        name: &'a str,
        input: &'a str,
    },
    CustomToolCallOutput {
        call_id: &'a str,
        output: CallOutput<'a>,
    },
    /// An item in the vendor's own format.
    #[serde(untagged)]
    Sealed(&'a Value),
}

impl<'a> RequestItem<'a> {
    pub(super) fn user(content: Parts<'a>) -> Self {
        Self::Message {
            role: "user",
            content,
            phase: None,
        }
    }

    pub(super) fn developer(text: &'a str) -> Self {
        Self::Message {
            role: "developer",
            content: Parts::Text(text),
            phase: None,
        }
    }

    pub(super) fn assistant(text: &'a str, phase: Option<&'a str>) -> Self {
        Self::Message {
            role: "assistant",
            content: Parts::Answer(text),
            phase,
        }
    }
}

/// The content of a message or of a tool's output.
#[derive(Debug)]
pub(super) enum Parts<'a> {
    /// Text for the model.
    Text(&'a str),
    /// Text from the model.
    Answer(&'a str),
    /// Input of the user.
    Input(&'a [Input]),
    /// Output of a tool.
    Output(&'a Output),
}

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Text(text) => [RequestPart::text(text)].serialize(serializer),
            // As parts it would need an id of the vendor, which the answers of other vendors lack.
            Self::Answer(text) => text.serialize(serializer),
            Self::Input(input) => serializer.collect_seq(input.iter().map(RequestPart::of)),
            Self::Output(output) => {
                let text = Some(output.text.as_str()).filter(|text| !text.is_empty());
                let images = output.images.iter().map(|it| RequestPart::image(it, None));
                serializer.collect_seq(text.map(RequestPart::text).into_iter().chain(images))
            }
        }
    }
}

/// The output of a tool: a text, or parts if it has images.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum CallOutput<'a> {
    Text(&'a str),
    Parts(Parts<'a>),
}

impl<'a> CallOutput<'a> {
    pub(super) fn of(output: &'a Output) -> Self {
        match output.images.is_empty() {
            true => Self::Text(&output.text),
            false => Self::Parts(Parts::Output(output)),
        }
    }
}

/// A part of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestPart<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        #[serde(skip_serializing_if = "Option::is_none")]
        image_url: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
        detail: &'a str,
    },
}

impl<'a> RequestPart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        Self::InputText { text }
    }

    fn of(input: &'a Input) -> Self {
        match input {
            Input::Text { text, .. } => Self::text(text),
            Input::Image { image, detail, .. } => Self::image(image, detail.as_deref()),
            // Other input is only named; the model can request its content.
            Input::Audio { .. } => Self::text("[a sound]"),
            Input::AudioFile { path } => Self::text(format!("[a sound: {path}]")),
            Input::Skill { name, path } => Self::text(format!("[the skill {name}: {path}]")),
            Input::Mention { name, path } => Self::text(format!("[{name}: {path}]")),
        }
    }

    /// An image, or a placeholder if its content is not available.
    fn image(image: &'a Image, detail: Option<&'a str>) -> Self {
        let (image_url, file_id) = match image {
            Image::Url { url } => (Some(url.as_str()), None),
            Image::File { id } => (None, Some(id.as_str())),
            Image::Path { path } => return Self::text(format!("[an image: {path}]")),
            Image::Blob(_) => return Self::text("[an image]"),
        };
        Self::InputImage {
            image_url,
            file_id,
            detail: detail.unwrap_or("auto"),
        }
    }
}
