//! Raw items of the Responses wire, as history for a model.
//!
//! Only what every wire can say is taken, and only its known members: a member that a vendor does not take
//! would fail every later call of the thread.

use raddle_agent::{NAME_BYTES_MAX, is_tool_name};
use raddle_core::{Call, Injected, Input, Output};
use serde::Deserialize;
use serde_json::Value;

use super::input::CHARS_MAX;
use crate::wire_error::{WireError, shown};

/// How many items one request may bring.
const ITEMS_MAX: usize = 1_000;

/// What the items mean. Thinking is left out: it is sealed, and nobody can say by whom.
pub(crate) fn injected(items: &[Value]) -> Result<Vec<Injected>, WireError> {
    if items.len() > ITEMS_MAX {
        let what =
            format!("items may have at most {ITEMS_MAX} items; send the rest with another call");
        return Err(WireError::Refused(what.into()));
    }
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
    InputText { text: String },
    OutputText { text: String },
    Refusal { refusal: String },
    InputImage {},
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
            if !is_tool_name(&it.name) {
                return Err(format!(
                    "its name must be 1 to {NAME_BYTES_MAX} letters, digits, `_` or `-`"
                ));
            }
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
            Injected::Output {
                call: it.call_id,
                output: Output::text(text(it.output)?),
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
        Part::InputImage {} => {
            Err("images are not taken here; send them with turn/start".to_owned())
        }
    });
    parts.collect()
}

/// The texts in a row.
fn text(content: Content) -> Result<String, String> {
    let parts = input(content)?.into_iter();
    Ok(parts
        .filter_map(|part| match part {
            Input::Text { text, .. } => Some(text),
            _ => None,
        })
        .collect())
}
