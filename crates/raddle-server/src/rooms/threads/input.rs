//! What users say.

use raddle_core::{Image, Input, Message};
use raddle_protocol as wire;

use crate::wire_error::WireError;

/// How many characters the texts of one input may have together.
pub(super) const CHARS_MAX: usize = 1 << 20;

/// A message of the user, unless it is too long.
pub(crate) fn message(
    input: Vec<wire::UserInput>,
    client_id: Option<String>,
) -> Result<Message, WireError> {
    let chars = input.iter().map(chars).sum();
    if chars > CHARS_MAX {
        return Err(WireError::InputTooLarge {
            chars,
            chars_max: CHARS_MAX,
        });
    }
    Ok(Message {
        item: wire::ItemId::mint(),
        input: input.into_iter().filter_map(part).collect(),
        client_id,
    })
}

fn chars(input: &wire::UserInput) -> usize {
    match input {
        wire::UserInput::Text(it) => it.text.chars().count(),
        _ => 0,
    }
}

fn part(input: wire::UserInput) -> Option<Input> {
    Some(match input {
        wire::UserInput::Text(it) => Input::Text {
            text: it.text,
            marks: (!it.text_elements.is_empty())
                .then(|| serde_json::to_value(&it.text_elements).unwrap_or_default()),
        },
        wire::UserInput::Image(it) => Input::Image {
            image: match it.image {
                wire::InputImage::Url { url } => Image::Url { url },
                wire::InputImage::File { file_id } => Image::File { id: file_id },
            },
            detail: it.detail.map(|detail| detail.as_str().to_owned()),
        },
        wire::UserInput::LocalImage(it) => Input::Image {
            image: Image::Path { path: it.path },
            detail: it.detail.map(|detail| detail.as_str().to_owned()),
        },
        wire::UserInput::Audio(it) => Input::Audio { url: it.url },
        wire::UserInput::LocalAudio(it) => Input::AudioFile { path: it.path },
        wire::UserInput::Skill(it) => Input::Skill {
            name: it.name,
            path: it.path,
        },
        wire::UserInput::Mention(it) => Input::Mention {
            name: it.name,
            path: it.path,
        },
        // A part this version does not know cannot be shown to a model.
        wire::UserInput::Unrecognized(_) => return None,
    })
}
