//! Raw items of the Responses wire, as history for a model.
//!
//! Only what every wire can say is taken, and only its known members: a member that a vendor does not take
//! would fail every later call of the thread.

use raddle_core::{Call, Image, Injected, Input, Output};
use serde::Deserialize;
use serde_json::Value;

use super::input::CHARS_MAX;
use crate::wire_error::{WireError, shown};

/// What the items mean. Thinking is left out: it is sealed, and nobody can say by whom.
pub(crate) fn injected(items: &[Value]) -> Result<Vec<Injected>, WireError> {
    let mut injected = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let read = read(item).map_err(|why| {
            WireError::Refused(format!("items[{at}] is not a Responses item: {why}").into())
        })?;
        injected.extend(read);
    }
    let bytes: u64 = injected.iter().map(Injected::bytes).sum();
    let chars = usize::try_from(bytes).unwrap_or(usize::MAX);
    if chars > CHARS_MAX {
        return Err(WireError::InputTooLarge {
            chars,
            chars_max: CHARS_MAX,
        });
    }
    Ok(injected)
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    InputText {
        text: String,
    },
    OutputText {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    InputImage {
        image_url: Option<String>,
        file_id: Option<String>,
        detail: Option<String>,
    },
}

#[derive(Deserialize)]
struct FunctionCall {
    call_id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct FunctionCallOutput {
    call_id: String,
    output: Content,
}

fn read(item: &Value) -> Result<Option<Injected>, String> {
    // A message may leave out what it is.
    let kind = match &item["type"] {
        Value::String(kind) => kind.as_str(),
        Value::Null if item.get("role").is_some() => "message",
        _ => return Err("it has no type".to_owned()),
    };
    Ok(Some(match kind {
        "message" => message(fields(item)?)?,
        "function_call" => {
            let it: FunctionCall = fields(item)?;
            Injected::Call(Call {
                id: it.call_id,
                tool: it.name,
                arguments: it.arguments,
                alone: false,
                freeform: false,
            })
        }
        "function_call_output" => {
            let it: FunctionCallOutput = fields(item)?;
            let (texts, images) = pieces(it.output)?;
            Injected::Output {
                call: it.call_id,
                output: Output {
                    text: texts,
                    images,
                    ..Output::default()
                },
            }
        }
        "reasoning" => return Ok(None),
        other => {
            return Err(format!(
                "the type `{}` is not taken; message, function_call, function_call_output and reasoning are",
                shown(other)
            ));
        }
    }))
}

fn fields<'a, T: Deserialize<'a>>(item: &'a Value) -> Result<T, String> {
    T::deserialize(item).map_err(|error| shown(&error.to_string()).into_owned())
}

fn message(it: Message) -> Result<Injected, String> {
    let text = |content| match pieces(content)? {
        (text, images) if images.is_empty() => Ok(text),
        _ => Err("only a user shows images".to_owned()),
    };
    Ok(match it.role.as_str() {
        "user" => Injected::User {
            input: input(it.content)?,
        },
        "developer" | "system" => Injected::Developer {
            text: text(it.content)?,
        },
        "assistant" => Injected::Assistant {
            text: text(it.content)?,
        },
        other => return Err(format!("nobody has the role `{}`", shown(other))),
    })
}

fn input(content: Content) -> Result<Vec<Input>, String> {
    let parts = match content {
        Content::Text(text) => return Ok(vec![Input::text(text)]),
        Content::Parts(parts) => parts,
    };
    let parts = parts.into_iter().map(|part| match part {
        Part::InputText { text } | Part::OutputText { text } => Ok(Input::text(text)),
        Part::Refusal { refusal } => Ok(Input::text(refusal)),
        Part::InputImage {
            image_url,
            file_id,
            detail,
        } => Ok(Input::Image {
            image: image(image_url, file_id)?,
            detail,
            path: None,
        }),
    });
    parts.collect()
}

/// The texts in a row, and the images.
fn pieces(content: Content) -> Result<(String, Vec<Image>), String> {
    let mut texts = String::new();
    let mut images = Vec::new();
    for part in input(content)? {
        match part {
            Input::Text { text, .. } => texts.push_str(&text),
            Input::Image { image, .. } => images.push(image),
            _ => {}
        }
    }
    Ok((texts, images))
}

fn image(url: Option<String>, file: Option<String>) -> Result<Image, String> {
    match (url, file) {
        (Some(url), None) => Ok(Image::Url { url }),
        (None, Some(id)) => Ok(Image::File { id }),
        _ => Err("an image has either image_url or file_id".to_owned()),
    }
}
