//! Conversion of user input into messages of a thread.

use std::io::{self, Read as _};
use std::path::Path;

use raddle_agent::{IMAGES_BYTES_MAX, ImageError, NewImage};
use raddle_core::{Image, Input, InputMessage, ThreadId};
use raddle_protocol as wire;
use serde_json::Value;

use super::refused;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::session::Session;
use crate::wire_error::{WireError, quoted};

/// Limit: characters in the texts of one input, or of one `thread/inject_items`; beyond it, the
/// server rejects the request with -32602.
pub(super) const CHARS_MAX: usize = 1 << 20;

/// Limit: number of images in one message, or in one result of a client's tool; beyond it, the
/// server rejects the message with -32600; the tool call fails, and the model is notified.
pub(super) const IMAGES_MAX: usize = 100;

/// Limit: a client's own id for a message; beyond it, the server rejects the request with -32600.
const CLIENT_ID_BYTES_MAX: usize = 1_024;

/// Converts user input to a message, unless it is too long. Its images are stored by then, so later
/// changes of their files have no effect.
pub(crate) async fn message(
    state: &ServerState,
    session: &Session,
    id: ThreadId,
    input: Vec<wire::UserInput>,
    client_id: Option<String>,
) -> Result<InputMessage, WireError> {
    refuse_unknown(&input)?;
    refuse_too_long(&input, client_id.as_deref())?;
    // Checks all parts before any image is stored.
    let mut parts = Vec::new();
    let mut bytes = 0;
    for part in input {
        let image = new_image(state, session, &part).await?;
        bytes += image.as_ref().map_or(0, NewImage::bytes);
        if bytes > IMAGES_BYTES_MAX {
            return Err(no_image(&part, ImageError::TooLarge));
        }
        parts.push((part, image));
    }
    let mut message = InputMessage {
        item: wire::ItemId::mint(),
        input: Vec::new(),
        client_id,
        hook_prompt: None,
    };
    for (part, image) in parts {
        let stored = match image {
            Some(image) => Some(state.threads.keep(id, image).await),
            None => None,
        };
        let stored = stored.transpose().map_err(|error| refused(id, error))?;
        message.input.extend(self::part(part, stored));
    }
    Ok(message)
}

/// Converts input to a queued message, unless it is too long or contains an image.
pub(crate) fn message_to_queue(
    input: Vec<wire::UserInput>,
    client_id: Option<String>,
) -> Result<InputMessage, WireError> {
    refuse_unknown(&input)?;
    refuse_too_long(&input, client_id.as_deref())?;
    if input.iter().any(is_image) {
        let what = "an image cannot wait in the queue; send it with turn/start or turn/steer";
        return Err(WireError::Refused(what.into()));
    }
    Ok(InputMessage {
        item: wire::ItemId::mint(),
        input: input.into_iter().filter_map(|it| part(it, None)).collect(),
        client_id,
        hook_prompt: None,
    })
}

/// Rejects a part of an unknown type: no model would receive it.
fn refuse_unknown(input: &[wire::UserInput]) -> Result<(), WireError> {
    for (index, part) in input.iter().enumerate() {
        let wire::UserInput::Unrecognized(members) = part else {
            continue;
        };
        let kind = members.get("type").and_then(Value::as_str);
        let kind = quoted(kind.unwrap_or_default());
        let known = wire::UserInput::KNOWN.join("`, `");
        return Err(WireError::InvalidRequest(format!(
            "input[{index}].type: unknown variant `{kind}`, expected one of `{known}`"
        )));
    }
    Ok(())
}

fn refuse_too_long(input: &[wire::UserInput], client_id: Option<&str>) -> Result<(), WireError> {
    if client_id.is_some_and(|id| id.len() > CLIENT_ID_BYTES_MAX) {
        let what = format!("clientUserMessageId may have at most {CLIENT_ID_BYTES_MAX} bytes");
        return Err(WireError::Refused(what.into()));
    }
    if input.iter().filter(|it| is_image(it)).count() > IMAGES_MAX {
        let what = format!("one input may have at most {IMAGES_MAX} images");
        return Err(WireError::Refused(what.into()));
    }
    let chars = input.iter().map(chars).sum();
    if chars > CHARS_MAX {
        return Err(WireError::InputTooLarge {
            chars,
            chars_max: CHARS_MAX,
        });
    }
    Ok(())
}

fn is_image(input: &wire::UserInput) -> bool {
    matches!(
        input,
        wire::UserInput::Image(_) | wire::UserInput::LocalImage(_)
    )
}

fn chars(input: &wire::UserInput) -> usize {
    match input {
        wire::UserInput::Text(it) => it.text.chars().count(),
        _ => 0,
    }
}

/// Returns the image of a part, if it has one.
async fn new_image(
    state: &ServerState,
    session: &Session,
    input: &wire::UserInput,
) -> Result<Option<NewImage>, WireError> {
    let image = match input {
        wire::UserInput::Image(wire::ImageUserInput {
            image: wire::InputImage::Url { url },
            ..
        }) => NewImage::of_url(url),
        wire::UserInput::LocalImage(it) => {
            files::refuse_too_long(&it.path)?;
            if !Path::new(&it.path).is_absolute() {
                return Err(not_absolute(&it.path));
            }
            let path = it.path.clone();
            let admission = PathAdmission::of(state, session).await;
            let read = move || read(Path::new(&path), &admission.resolved());
            let bytes = session.disk.run(&session.outgoing, read).await??;
            NewImage::of(bytes)
        }
        _ => return Ok(None),
    };
    image.map(Some).map_err(|error| no_image(input, error))
}

/// Reads a file; of one that is too large, only enough to notice.
fn read(path: &Path, admission: &PathAdmission) -> Result<Vec<u8>, WireError> {
    let unreadable = |what: String| {
        let message = format!("the image {} cannot be read: {what}", path.display());
        WireError::NoImage(message)
    };
    let (file, metadata) = files::open(path, admission).map_err(|error| match error {
        WireError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            unreadable("there is no such file".to_owned())
        }
        WireError::Io(error) => unreadable(error.to_string()),
        error => error,
    })?;
    if metadata.is_dir() {
        return Err(unreadable("it is a folder".to_owned()));
    }
    let mut bytes = Vec::new();
    let bytes_max = IMAGES_BYTES_MAX as u64 + 1;
    let outcome = file.take(bytes_max).read_to_end(&mut bytes);
    outcome.map_err(|error| unreadable(error.to_string()))?;
    Ok(bytes)
}

/// Returns the error for a relative path of an image.
fn not_absolute(path: &str) -> WireError {
    let path = quoted(path);
    WireError::NoImage(format!(
        "the image {path} cannot be read: its path must be absolute; write it from / on, without file:// or ~"
    ))
}

fn no_image(input: &wire::UserInput, error: ImageError) -> WireError {
    WireError::NoImage(match input {
        wire::UserInput::LocalImage(it) => format!("the image {} is rejected: {error}", it.path),
        _ => format!("an image is rejected: {error}"),
    })
}

/// Converts a part to the form that threads store, with its stored image.
fn part(input: wire::UserInput, stored: Option<Image>) -> Option<Input> {
    Some(match input {
        wire::UserInput::Text(it) => Input::Text {
            text: it.text,
            marks: (!it.text_elements.is_empty())
                .then(|| serde_json::to_value(&it.text_elements).unwrap_or_default()),
        },
        wire::UserInput::Image(it) => Input::Image {
            image: match it.image {
                wire::InputImage::Url { url } => stored.unwrap_or(Image::Url { url }),
                wire::InputImage::File { file_id } => Image::File { id: file_id },
            },
            detail: it.detail.map(|detail| detail.as_str().to_owned()),
            path: None,
        },
        wire::UserInput::LocalImage(it) => Input::Image {
            image: stored.unwrap_or_else(|| Image::Path {
                path: it.path.clone(),
            }),
            detail: it.detail.map(|detail| detail.as_str().to_owned()),
            path: Some(it.path),
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
        // The request with such an input was rejected.
        wire::UserInput::Unrecognized(_) => return None,
    })
}
