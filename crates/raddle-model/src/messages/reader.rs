//! Reads the events of this wire.

use serde_json::{Map, Value, json};

use crate::open_items::{OpenItems, TextKind};
use crate::usage::count;
use crate::vendor_error::{VendorMessage, incomplete_answer};
use crate::{CallError, CallForm, StreamEvent, Tokens, VendorFault, wire};

/// Reads events. An answer is a sequence of blocks, of which one at a time is open.
#[derive(Debug, Default)]
pub(crate) struct MessagesReader {
    items: OpenItems,
    block: OpenBlock,
    /// Calls are held back until it is certain that the answer was not truncated in one of them.
    calls: Vec<StreamEvent>,
    usage: Map<String, Value>,
    is_finished: bool,
}

/// The block that is open.
#[derive(Debug, Default)]
enum OpenBlock {
    #[default]
    None,
    Text,
    Thinking {
        signature: String,
    },
    /// Thinking that has sealed content only.
    Redacted(Value),
    Call {
        id: String,
        name: String,
        /// The arguments that came with the start of the block.
        initial_input: Value,
        arguments: String,
    },
}

impl wire::WireReader for MessagesReader {
    fn read(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        if data.trim() == "[DONE]" {
            return Ok(false);
        }
        let event: Value =
            serde_json::from_str(data).map_err(|error| CallError::Malformed(error.to_string()))?;
        match event["type"].as_str() {
            Some("ping") => return Ok(false),
            Some("message_start") => self.add_usage(&event["message"]["usage"]),
            Some("content_block_start") => self.open(&event["content_block"], events),
            Some("content_block_delta") => self.grow(&event["delta"], events),
            Some("content_block_stop") => self.close(events),
            Some("message_delta") => {
                self.add_usage(&event["usage"]);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop(reason, events)?;
                }
            }
            Some("message_stop") => self.complete(events),
            kind if kind == Some("error") || !event["error"].is_null() => {
                let message = VendorMessage::of(&event["error"]);
                return Err(CallError::Vendor(Box::new(message.error(None))));
            }
            Some(_) => {}
            None => {
                let message = "an event has no type; does base_url lead to a Messages API?";
                return Err(CallError::Malformed(message.to_owned()));
            }
        }
        if self.calls.len() > wire::ITEMS_MAX {
            return Err(wire::too_many_items());
        }
        Ok(true)
    }

    fn end(&mut self, events: &mut Vec<StreamEvent>) {
        if self.is_finished {
            self.complete(events);
        }
    }
}

impl MessagesReader {
    fn open(&mut self, block: &Value, events: &mut Vec<StreamEvent>) {
        self.close(events);
        let text = |name: &str| block[name].as_str().unwrap_or_default();
        self.block = match block["type"].as_str() {
            Some("text") => OpenBlock::Text,
            Some("thinking") => OpenBlock::Thinking {
                signature: text("signature").to_owned(),
            },
            Some("redacted_thinking") => OpenBlock::Redacted(block.clone()),
            Some("tool_use") => OpenBlock::Call {
                id: text("id").to_owned(),
                name: text("name").to_owned(),
                initial_input: block["input"].clone(),
                arguments: String::new(),
            },
            _ => OpenBlock::None,
        };
        match &self.block {
            OpenBlock::Text => self.add_text(text("text"), events),
            // It may have no text at all, and is sealed all the same.
            OpenBlock::Thinking { .. } => {
                self.items
                    .add_text(TextKind::Summary, text("thinking"), events)
            }
            OpenBlock::Redacted(_) => self.items.add_text(TextKind::Summary, "", events),
            OpenBlock::Call { .. } | OpenBlock::None => {}
        }
    }

    fn grow(&mut self, delta: &Value, events: &mut Vec<StreamEvent>) {
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        match &mut self.block {
            OpenBlock::Text => self.add_text(text("text"), events),
            OpenBlock::Thinking { signature } => {
                signature.push_str(text("signature"));
                self.items
                    .add_text(TextKind::Summary, text("thinking"), events);
            }
            OpenBlock::Call { arguments, .. } => arguments.push_str(text("partial_json")),
            OpenBlock::Redacted(_) | OpenBlock::None => {}
        }
    }

    /// Adds text to a message; a message without text is skipped.
    fn add_text(&mut self, text: &str, events: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.items.add_text(TextKind::Message, text, events);
        }
    }

    fn close(&mut self, events: &mut Vec<StreamEvent>) {
        let block = std::mem::take(&mut self.block);
        let seal = |text: &str| match &block {
            OpenBlock::Thinking { signature } => {
                json!({ "type": "thinking", "thinking": text, "signature": signature })
            }
            OpenBlock::Redacted(block) => block.clone(),
            _ => Value::Null,
        };
        self.items.close(seal, events);
        if let OpenBlock::Call {
            id: call_id,
            name,
            initial_input,
            arguments,
        } = block
        {
            let arguments = match arguments.is_empty() && initial_input.is_object() {
                true => initial_input.to_string(),
                false => arguments,
            };
            self.calls.push(StreamEvent::Call {
                call_id,
                name,
                arguments,
                form: CallForm::Function,
            });
        }
    }

    fn stop(&mut self, reason: &str, events: &mut Vec<StreamEvent>) -> Result<(), CallError> {
        let fault = match reason {
            "max_tokens" => VendorFault::CutShort,
            "model_context_window_exceeded" => VendorFault::ContextFull,
            "refusal" => VendorFault::Policy,
            _ => {
                self.finish(events);
                return Ok(());
            }
        };
        Err(incomplete_answer(fault, reason))
    }

    fn complete(&mut self, events: &mut Vec<StreamEvent>) {
        self.finish(events);
        events.push(StreamEvent::Completed(self.tokens()));
    }

    fn finish(&mut self, events: &mut Vec<StreamEvent>) {
        self.is_finished = true;
        self.close(events);
        events.append(&mut self.calls);
    }

    /// Merges usage figures; later ones are more exact.
    fn add_usage(&mut self, usage: &Value) {
        let members = usage.as_object().into_iter().flatten();
        let known = members.filter(|(_, value)| !value.is_null());
        self.usage
            .extend(known.map(|(name, value)| (name.clone(), value.clone())));
    }

    fn tokens(&self) -> Option<Tokens> {
        if self.usage.is_empty() {
            return None;
        }
        let tokens = |name: &str| count(self.usage.get(name).unwrap_or(&Value::Null));
        let cached = tokens("cache_read_input_tokens")?;
        let written = tokens("cache_creation_input_tokens")?;
        Some(Tokens {
            // This wire counts the cached tokens separately.
            input: tokens("input_tokens")?
                .saturating_add(cached)
                .saturating_add(written),
            cached,
            cache_written: written,
            output: tokens("output_tokens")?,
            // This wire does not report it.
            reasoning: 0,
        })
    }
}
