//! Reads the events of this wire.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::event::{CallForm, ItemKind, StreamEvent, Tokens};
use crate::usage::count;
use crate::vendor_error::VendorMessage;
use crate::wire::WireReader;
use crate::{CallError, VendorError};

/// Result of reading an event.
#[derive(Debug, PartialEq)]
enum ReadOutcome {
    /// A keep-alive without meaning.
    Nothing,
    /// A sign that the model is at work.
    Progress,
    /// An event for the caller.
    Event(StreamEvent),
}

/// Reads events. It tracks the items that they name.
#[derive(Debug, Default)]
pub(crate) struct ResponsesReader {
    /// The newest last. An answer has few.
    items: Vec<TrackedItem>,
}

/// An item that an event named. Some vendors give it another id in each event, others no index; so
/// its index identifies it if it has one, and its id otherwise.
#[derive(Debug)]
struct TrackedItem {
    index: Option<u32>,
    id: Arc<str>,
    is_started: bool,
}

/// The members of an event that are read. The type of the event determines which of them are
/// present, and their types.
#[derive(Debug, Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    item_id: Option<BorrowedText<'a>>,
    output_index: Option<u32>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    summary_index: Option<u32>,
    content_index: Option<u32>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A text that borrows where possible.
#[derive(Debug, Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

impl WireReader for ResponsesReader {
    fn read(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        match self.read(data)? {
            ReadOutcome::Nothing => return Ok(false),
            ReadOutcome::Progress => {}
            ReadOutcome::Event(event) => {
                events.extend(self.missing_start(&event));
                events.push(event);
            }
        }
        Ok(true)
    }

    /// On this wire an event completes the answer.
    fn end(&mut self, _: &mut Vec<StreamEvent>) {}
}

impl ResponsesReader {
    fn read(&mut self, data: &str) -> Result<ReadOutcome, CallError> {
        if data == "[DONE]" {
            return Ok(ReadOutcome::Nothing);
        }
        let wire: ResponsesEvent<'_> = serde_json::from_str(data).map_err(malformed)?;
        let event = match &*wire.kind {
            "response.output_text.delta" | "response.refusal.delta" => StreamEvent::Text {
                text: text(wire.delta)?,
                id: self.item_id(&wire),
            },
            "response.reasoning_summary_text.delta" => StreamEvent::Summary {
                part: wire.summary_index.unwrap_or_default(),
                text: text(wire.delta)?,
                id: self.item_id(&wire),
            },
            "response.reasoning_text.delta" => StreamEvent::Thought {
                part: wire.content_index.unwrap_or_default(),
                text: text(wire.delta)?,
                id: self.item_id(&wire),
            },
            "response.output_item.added" => {
                let item: ItemHead<'_> = parsed(wire.item)?;
                let kind = match &*item.kind {
                    "message" => ItemKind::Message,
                    "reasoning" => ItemKind::Reasoning,
                    _ => return Ok(ReadOutcome::Progress),
                };
                let id = self.id(wire.output_index, &item.id);
                StreamEvent::Started { id, kind }
            }
            "response.output_item.done" => match self.done(wire.output_index, parsed(wire.item)?) {
                Some(event) => event,
                None => return Ok(ReadOutcome::Progress),
            },
            "response.completed" => {
                let response: CompletedResponse = parsed(wire.response)?;
                StreamEvent::Completed(response.usage.as_ref().and_then(tokens))
            }
            "response.failed" | "response.incomplete" | "error" => return Err(failed(&wire, data)),
            "" if wire.error.is_some() => return Err(failed(&wire, data)),
            "" => {
                let message = "an event has no type; does base_url lead to a Responses API?";
                return Err(CallError::Malformed(message.to_owned()));
            }
            // Vendors send these only as keep-alives.
            "ping" | "keepalive" | "response.in_progress" => return Ok(ReadOutcome::Nothing),
            _ => return Ok(ReadOutcome::Progress),
        };
        Ok(ReadOutcome::Event(event))
    }

    /// Returns the start of an item, if the vendor did not announce it.
    fn missing_start(&mut self, event: &StreamEvent) -> Option<StreamEvent> {
        let (id, kind) = match event {
            StreamEvent::Started { id, .. } => (id, None),
            StreamEvent::Text { id, .. } | StreamEvent::Message { id, .. } => {
                (id, Some(ItemKind::Message))
            }
            StreamEvent::Summary { id, .. }
            | StreamEvent::Thought { id, .. }
            | StreamEvent::Reasoning { id, .. } => (id, Some(ItemKind::Reasoning)),
            StreamEvent::Call { .. } | StreamEvent::Completed(_) => return None,
        };
        let item = self.items.iter_mut().rfind(|item| item.id == *id)?;
        let was_started = std::mem::replace(&mut item.is_started, true);
        let kind = kind.filter(|_| !was_started)?;
        let id = id.clone();
        Some(StreamEvent::Started { id, kind })
    }

    fn item_id(&mut self, wire: &ResponsesEvent<'_>) -> Arc<str> {
        let id = wire.item_id.as_ref().map_or("", |it| &it.0);
        self.id(wire.output_index, id)
    }

    fn id(&mut self, index: Option<u32>, id: &str) -> Arc<str> {
        let known = self.items.iter().rfind(|item| match (item.index, index) {
            (Some(known), Some(index)) => known == index,
            _ => *item.id == *id,
        });
        if let Some(item) = known {
            return item.id.clone();
        }
        let is_taken = self.items.iter().any(|item| *item.id == *id);
        let id: Arc<str> = match is_taken {
            true => format!("{id} {}", self.items.len()).into(),
            false => id.into(),
        };
        self.items.push(TrackedItem {
            index,
            id: id.clone(),
            is_started: false,
        });
        id
    }

    fn done(&mut self, index: Option<u32>, item: Value) -> Option<StreamEvent> {
        let texts = |member: &str| {
            let parts = item[member].as_array().map_or(&[][..], Vec::as_slice);
            let texts = parts.iter().map(|part| {
                let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
                text.unwrap_or_default().to_owned()
            });
            texts.collect::<Vec<_>>()
        };
        let member = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str()? {
            "message" => Some(StreamEvent::Message {
                id: self.id(index, &member("id")),
                text: texts("content").concat(),
                phase: item["phase"].as_str().map(str::to_owned),
                // The vendor expects it back, and other vendors do not know it.
                sealed: item["phase"].as_str().map(|it| json!({ "phase": it })),
            }),
            "reasoning" => Some(StreamEvent::Reasoning {
                id: self.id(index, &member("id")),
                summary: texts("summary"),
                content: texts("content"),
                sealed: item,
            }),
            "function_call" => Some(StreamEvent::Call {
                call_id: member("call_id"),
                name: member("name"),
                arguments: member("arguments"),
                form: CallForm::Function,
            }),
            "custom_tool_call" => Some(StreamEvent::Call {
                call_id: member("call_id"),
                name: member("name"),
                arguments: member("input"),
                form: CallForm::Freeform,
            }),
            _ => None,
        }
    }
}

/// The members that identify an incomplete item.
#[derive(Deserialize)]
struct ItemHead<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
}

/// The members that are read of a complete response. It repeats all items, which can be long.
#[derive(Deserialize)]
struct CompletedResponse {
    usage: Option<Value>,
}

/// Returns the usage of an answer; `None` if it is malformed, because the answer is valid all the
/// same.
fn tokens(usage: &Value) -> Option<Tokens> {
    usage.is_object().then_some(())?;
    Some(Tokens {
        input: count(&usage["input_tokens"])?,
        cached: count(&usage["input_tokens_details"]["cached_tokens"])?,
        cache_written: count(&usage["input_tokens_details"]["cache_write_tokens"])?,
        output: count(&usage["output_tokens"])?,
        reasoning: count(&usage["output_tokens_details"]["reasoning_tokens"])?,
    })
}

fn malformed(error: serde_json::Error) -> CallError {
    CallError::Malformed(error.to_string())
}

/// Parses a member that the event's type requires.
fn parsed<'a, T: Deserialize<'a>>(member: Option<&'a RawValue>) -> Result<T, CallError> {
    serde_json::from_str(member.map_or("{}", RawValue::get)).map_err(malformed)
}

fn text(member: Option<&RawValue>) -> Result<String, CallError> {
    serde_json::from_str(member.map_or("\"\"", RawValue::get)).map_err(malformed)
}

/// Builds the error of a failure in the middle of an answer. Vendors send it in the response, next
/// to it, or in the event itself.
fn failed(wire: &ResponsesEvent<'_>, data: &str) -> CallError {
    let read = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_default();
    let response = wire.response.map_or(Value::Null, |it| read(it.get()));
    let message = if wire.kind == "response.incomplete" {
        VendorMessage::of(&response["incomplete_details"])
    } else if response["error"].is_object() {
        VendorMessage::of(&response["error"])
    } else if let Some(error) = wire.error {
        VendorMessage::of(&read(error.get()))
    } else {
        let mut event = read(data);
        event["type"] = Value::Null;
        VendorMessage::of(&event)
    };
    let mut error: VendorError = message.error(None);
    if wire.kind == "response.incomplete" {
        error.message = format!("the model's answer is not complete: {}", error.message);
    }
    CallError::Vendor(Box::new(error))
}

#[cfg(test)]
mod tests;
