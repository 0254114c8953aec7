//! Reading this wire's events.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::event::{CallForm, ItemKind, StreamEvent, Tokens};
use crate::usage::count;
use crate::vendor::VendorMessage;
use crate::{CallError, VendorError};

/// What an event of the wire is to us.
#[derive(Debug, PartialEq)]
pub(super) enum ReadOutcome {
    /// No more than that the line is open.
    Nothing,
    /// That the model is at work.
    Progress,
    /// This.
    Event(StreamEvent),
}

/// Reads events. It remembers the items that were named.
#[derive(Debug, Default)]
pub(crate) struct ResponsesReader {
    /// The newest last. An answer has few.
    items: Vec<TrackedItem>,
}

/// An item that was named. Some vendors give it another id in each event, others no place; so its place
/// counts if it has one, and its id if not.
#[derive(Debug)]
struct TrackedItem {
    place: Option<u32>,
    id: Arc<str>,
    is_started: bool,
}

/// The members of an event that are looked at. Which are there depends on its type, and so does what some
/// of them are.
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

/// A text that is not copied if it need not be.
#[derive(Debug, Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

impl ResponsesReader {
    /// Reads an event.
    pub(super) fn read(&mut self, data: &str) -> Result<ReadOutcome, CallError> {
        if data == "[DONE]" {
            return Ok(ReadOutcome::Nothing);
        }
        let wire: ResponsesEvent<'_> = serde_json::from_str(data).map_err(malformed)?;
        let event = match &*wire.kind {
            "response.output_text.delta" | "response.refusal.delta" => StreamEvent::Text {
                text: text(wire.delta)?,
                id: self.of_item(&wire),
            },
            "response.reasoning_summary_text.delta" => StreamEvent::Summary {
                part: wire.summary_index.unwrap_or_default(),
                text: text(wire.delta)?,
                id: self.of_item(&wire),
            },
            "response.reasoning_text.delta" => StreamEvent::Thought {
                part: wire.content_index.unwrap_or_default(),
                text: text(wire.delta)?,
                id: self.of_item(&wire),
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
                let what = "an event has no type; does base_url lead to a Responses API?";
                return Err(CallError::Malformed(what.to_owned()));
            }
            // Vendors send these only so that no one closes the line.
            "ping" | "keepalive" | "response.in_progress" => return Ok(ReadOutcome::Nothing),
            _ => return Ok(ReadOutcome::Progress),
        };
        Ok(ReadOutcome::Event(event))
    }

    /// The beginning of an item, if the vendor did not announce it.
    pub(super) fn missing_start(&mut self, event: &StreamEvent) -> Option<StreamEvent> {
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

    fn of_item(&mut self, wire: &ResponsesEvent<'_>) -> Arc<str> {
        let id = wire.item_id.as_ref().map_or("", |it| &it.0);
        self.id(wire.output_index, id)
    }

    fn id(&mut self, place: Option<u32>, id: &str) -> Arc<str> {
        let known = self.items.iter().rfind(|item| match (item.place, place) {
            (Some(known), Some(place)) => known == place,
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
            place,
            id: id.clone(),
            is_started: false,
        });
        id
    }

    fn done(&mut self, place: Option<u32>, item: Value) -> Option<StreamEvent> {
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
                id: self.id(place, &member("id")),
                text: texts("content").concat(),
                phase: item["phase"].as_str().map(str::to_owned),
                // The vendor wants to see it again, and others do not know it.
                sealed: item["phase"].as_str().map(|it| json!({ "phase": it })),
            }),
            "reasoning" => Some(StreamEvent::Reasoning {
                id: self.id(place, &member("id")),
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

/// What tells items apart before they are whole.
#[derive(Deserialize)]
struct ItemHead<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
}

/// What is read of a response that is complete. It repeats all items, which can be long.
#[derive(Deserialize)]
struct CompletedResponse {
    usage: Option<Value>,
}

/// What an answer cost, as far as it can be read: the answer is there, whatever is said of its price.
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

/// A member that the event's type asks for.
fn parsed<'a, T: Deserialize<'a>>(member: Option<&'a RawValue>) -> Result<T, CallError> {
    serde_json::from_str(member.map_or("{}", RawValue::get)).map_err(malformed)
}

fn text(member: Option<&RawValue>) -> Result<String, CallError> {
    serde_json::from_str(member.map_or("\"\"", RawValue::get)).map_err(malformed)
}

/// What a failure in the middle of an answer means. Vendors say it in the response, beside it, or in the
/// event itself.
fn failed(wire: &ResponsesEvent<'_>, data: &str) -> CallError {
    let read = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_default();
    let response = wire.response.map_or(Value::Null, |it| read(it.get()));
    let words = if wire.kind == "response.incomplete" {
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
    let mut error: VendorError = words.error(None);
    if wire.kind == "response.incomplete" {
        error.message = format!("the model's answer is not complete: {}", error.message);
    }
    CallError::Vendor(Box::new(error))
}

#[cfg(test)]
mod tests;
