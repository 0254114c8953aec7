//! What users say.

use std::io::{self, Read as _};
use std::path::Path;

use raddle_agent::{IMAGES_BYTES_MAX, ImageError, NewImage};
use raddle_core::{Image, Input, InputMessage, ThreadId};
use raddle_protocol as wire;

use super::refused;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::session::Session;
use crate::wire_error::{WireError, shown};

/// How many characters the texts of one input may have together.
pub(super) const CHARS_MAX: usize = 1 << 20;

/// How many images it may have.
pub(super) const IMAGES_MAX: usize = 100;

/// How long a client's own id for it may be.
const CLIENT_ID_BYTES_MAX: usize = 1_024;

/// A message of the user, unless it is too long. Its images are kept by then: what a file holds later does
/// not matter.
pub(crate) async fn message(
    rooms: &ServerState,
    session: &Session,
    id: ThreadId,
    input: Vec<wire::UserInput>,
    client_id: Option<String>,
) -> Result<InputMessage, WireError> {
    refuse_too_long(&input, client_id.as_deref())?;
    // All are looked at before any is kept.
    let mut parts = Vec::new();
    let mut bytes = 0;
    for part in input {
        let picture = picture(rooms, session, &part).await?;
        bytes += picture.as_ref().map_or(0, NewImage::bytes);
        if bytes > IMAGES_BYTES_MAX {
            return Err(no_image(&part, ImageError::TooLarge));
        }
        parts.push((part, picture));
    }
    let mut message = InputMessage {
        item: wire::ItemId::mint(),
        input: Vec::new(),
        client_id,
    };
    for (part, picture) in parts {
        let kept = match picture {
            Some(picture) => Some(rooms.threads.keep(id, picture).await),
            None => None,
        };
        let kept = kept.transpose().map_err(|error| refused(id, error))?;
        message.input.extend(self::part(part, kept));
    }
    Ok(message)
}

/// A message that waits in a queue, unless it is too long or holds an image.
pub(crate) fn message_to_queue(
    input: Vec<wire::UserInput>,
    client_id: Option<String>,
) -> Result<InputMessage, WireError> {
    refuse_too_long(&input, client_id.as_deref())?;
    if input.iter().any(is_image) {
        let what = "an image cannot wait in the queue; send it with turn/start or turn/steer";
        return Err(WireError::Refused(what.into()));
    }
    Ok(InputMessage {
        item: wire::ItemId::mint(),
        input: input.into_iter().filter_map(|it| part(it, None)).collect(),
        client_id,
    })
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

/// The image of a part, if it has one of its own.
async fn picture(
    rooms: &ServerState,
    session: &Session,
    input: &wire::UserInput,
) -> Result<Option<NewImage>, WireError> {
    let picture = match input {
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
            let admission = PathAdmission::of(rooms, session).await;
            let read = move || read(Path::new(&path), &admission.resolved());
            let bytes = session.disk.run(&session.outgoing, read).await??;
            NewImage::of(bytes)
        }
        _ => return Ok(None),
    };
    picture.map(Some).map_err(|error| no_image(input, error))
}

/// Reads a file, and of one that is too large only so much that this shows.
fn read(path: &Path, admission: &PathAdmission) -> Result<Vec<u8>, WireError> {
    let no_file = |what: String| {
        let message = format!("the image {} cannot be read: {what}", path.display());
        WireError::NoImage(message)
    };
    let (file, metadata) = files::open(path, admission).map_err(|error| match error {
        WireError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            no_file("there is no such file".to_owned())
        }
        WireError::Io(error) => no_file(error.to_string()),
        error => error,
    })?;
    if metadata.is_dir() {
        return Err(no_file("it is a folder".to_owned()));
    }
    let mut bytes = Vec::new();
    let most = IMAGES_BYTES_MAX as u64 + 1;
    let read = file.take(most).read_to_end(&mut bytes);
    read.map_err(|error| no_file(error.to_string()))?;
    Ok(bytes)
}

/// That the path of an image begins in a folder that the server does not know.
fn not_absolute(path: &str) -> WireError {
    let path = shown(path);
    WireError::NoImage(format!(
        "the image {path} cannot be read: its path must be absolute; write it from / on, without file:// or ~"
    ))
}

fn no_image(input: &wire::UserInput, error: ImageError) -> WireError {
    WireError::NoImage(match input {
        wire::UserInput::LocalImage(it) => format!("the image {} is not taken: {error}", it.path),
        _ => format!("an image is not taken: {error}"),
    })
}

/// A part as threads keep it, with its image if that was kept.
fn part(input: wire::UserInput, kept: Option<Image>) -> Option<Input> {
    Some(match input {
        wire::UserInput::Text(it) => Input::Text {
            text: it.text,
            marks: (!it.text_elements.is_empty())
                .then(|| serde_json::to_value(&it.text_elements).unwrap_or_default()),
        },
        wire::UserInput::Image(it) => Input::Image {
            image: match it.image {
                wire::InputImage::Url { url } => kept.unwrap_or(Image::Url { url }),
                wire::InputImage::File { file_id } => Image::File { id: file_id },
            },
            detail: it.detail.map(|detail| detail.as_str().to_owned()),
            path: None,
        },
        wire::UserInput::LocalImage(it) => Input::Image {
            image: kept.unwrap_or_else(|| Image::Path {
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
        // A part this version does not know cannot be shown to a model.
        wire::UserInput::Unrecognized(_) => return None,
    })
}
