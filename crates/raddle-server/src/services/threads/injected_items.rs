//! Raw items of the Responses API, as history for a model.
//!
//! Only items that every provider supports are accepted, and only their known members: a member
//! that a vendor rejects would fail every later call of the thread.

use raddle_agent::{NAME_BYTES_MAX, is_tool_name};
use raddle_core::{InjectedItem, Input, Output, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use super::input::CHARS_MAX;
use crate::wire_error::{WireError, quoted};

/// Limit: items of one `thread/inject_items`; beyond it, the server rejects the request with
/// -32600.
const ITEMS_MAX: usize = 1_000;

/// Converts the items. Reasoning is left out: it is encrypted, and its vendor is unknown.
pub(crate) fn injected(items: &[Value]) -> Result<Vec<InjectedItem>, WireError> {
    if items.len() > ITEMS_MAX {
        let what =
            format!("items may have at most {ITEMS_MAX} items; send the rest with another call");
        return Err(WireError::Refused(what.into()));
    }
    let mut injected = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let item_read = read(item).map_err(|why| {
            WireError::Refused(format!("items[{index}] is not a Responses item: {why}").into())
        })?;
        injected.extend(item_read);
    }
    let bytes: u64 = injected.iter().map(InjectedItem::bytes).sum();
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
struct InjectedMessage {
    role: String,
    content: InjectedContent,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum InjectedContent {
    Text(String),
    Parts(Vec<InjectedPart>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InjectedPart {
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
    output: InjectedContent,
}

fn read(item: &Value) -> Result<Option<InjectedItem>, String> {
    // A message may omit its type.
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
            InjectedItem::Call(ToolCall {
                id: it.call_id,
                tool: it.name,
                arguments: it.arguments,
                alone: false,
                freeform: false,
            })
        }
        "function_call_output" => {
            let it: FunctionCallOutput = fields(item)?;
            InjectedItem::Output {
                call: it.call_id,
                output: Output::text(text(it.output)?),
            }
        }
        "reasoning" => return Ok(None),
        other => {
            return Err(format!(
                "the type `{}` is not supported; use message, function_call, function_call_output or reasoning",
                quoted(other)
            ));
        }
    }))
}

fn fields<'a, T: Deserialize<'a>>(item: &'a Value) -> Result<T, String> {
    T::deserialize(item).map_err(|error| quoted(&error.to_string()).into_owned())
}

fn message(it: InjectedMessage) -> Result<InjectedItem, String> {
    Ok(match it.role.as_str() {
        "user" => InjectedItem::User {
            input: input(it.content)?,
        },
        "developer" | "system" => InjectedItem::Developer {
            text: text(it.content)?,
        },
        "assistant" => InjectedItem::Assistant {
            text: text(it.content)?,
        },
        other => return Err(format!("unknown role `{}`", quoted(other))),
    })
}

fn input(content: InjectedContent) -> Result<Vec<Input>, String> {
    let parts = match content {
        InjectedContent::Text(text) => return Ok(vec![Input::text(text)]),
        InjectedContent::Parts(parts) => parts,
    };
    let parts = parts.into_iter().map(|part| match part {
        InjectedPart::InputText { text } | InjectedPart::OutputText { text } => {
            Ok(Input::text(text))
        }
        InjectedPart::Refusal { refusal } => Ok(Input::text(refusal)),
        InjectedPart::InputImage {} => {
            Err("images are not supported here; send them with turn/start".to_owned())
        }
    });
    parts.collect()
}

/// Concatenates the texts of the content.
fn text(content: InjectedContent) -> Result<String, String> {
    let parts = input(content)?.into_iter();
    Ok(parts
        .filter_map(|part| match part {
            Input::Text { text, .. } => Some(text),
            _ => None,
        })
        .collect())
}
