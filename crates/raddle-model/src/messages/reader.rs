//! Reading this wire's events.

use serde_json::{Map, Value, json};

use crate::open_items::{OpenItems, TextKind};
use crate::usage::count;
use crate::vendor::{self, VendorMessage};
use crate::{CallError, CallForm, StreamEvent, Tokens, VendorFault, stream};

/// Reads events. An answer is a row of blocks, of which one at a time is open.
#[derive(Debug, Default)]
pub(crate) struct MessagesReader {
    items: OpenItems,
    block: OpenBlock,
    /// Calls wait until it is known that the answer was not cut short in one of them.
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
    /// Thinking that is only sealed.
    Redacted(Value),
    Call {
        id: String,
        name: String,
        /// As far as it was given at once.
        whole: Value,
        arguments: String,
    },
}

impl stream::WireReader for MessagesReader {
    fn read(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        if data.trim() == "[DONE]" {
            return Ok(false);
        }
        let event: Value =
            serde_json::from_str(data).map_err(|error| CallError::Malformed(error.to_string()))?;
        match event["type"].as_str() {
            Some("ping") => return Ok(false),
            Some("message_start") => self.spend(&event["message"]["usage"]),
            Some("content_block_start") => self.open(&event["content_block"], said),
            Some("content_block_delta") => self.grow(&event["delta"], said),
            Some("content_block_stop") => self.close(said),
            Some("message_delta") => {
                self.spend(&event["usage"]);
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.stop(reason, said)?;
                }
            }
            Some("message_stop") => self.complete(said),
            kind if kind == Some("error") || !event["error"].is_null() => {
                let words = VendorMessage::of(&event["error"]);
                return Err(CallError::Vendor(Box::new(words.error(None))));
            }
            Some(_) => {}
            None => {
                let what = "an event has no type; does base_url lead to a Messages API?";
                return Err(CallError::Malformed(what.to_owned()));
            }
        }
        if self.calls.len() > stream::ITEMS_MAX {
            return Err(stream::too_many_items());
        }
        Ok(true)
    }

    fn end(&mut self, said: &mut Vec<StreamEvent>) {
        if self.is_finished {
            self.complete(said);
        }
    }
}

impl MessagesReader {
    fn open(&mut self, block: &Value, said: &mut Vec<StreamEvent>) {
        self.close(said);
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
                whole: block["input"].clone(),
                arguments: String::new(),
            },
            _ => OpenBlock::None,
        };
        match &self.block {
            OpenBlock::Text => self.say(text("text"), said),
            // It may have no words at all, and is sealed all the same.
            OpenBlock::Thinking { .. } => self.items.say(TextKind::Summary, text("thinking"), said),
            OpenBlock::Redacted(_) => self.items.say(TextKind::Summary, "", said),
            OpenBlock::Call { .. } | OpenBlock::None => {}
        }
    }

    fn grow(&mut self, delta: &Value, said: &mut Vec<StreamEvent>) {
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        match &mut self.block {
            OpenBlock::Text => self.say(text("text"), said),
            OpenBlock::Thinking { signature } => {
                signature.push_str(text("signature"));
                self.items.say(TextKind::Summary, text("thinking"), said);
            }
            OpenBlock::Call { arguments, .. } => arguments.push_str(text("partial_json")),
            OpenBlock::Redacted(_) | OpenBlock::None => {}
        }
    }

    /// A message without words is none.
    fn say(&mut self, text: &str, said: &mut Vec<StreamEvent>) {
        if !text.is_empty() {
            self.items.say(TextKind::Message, text, said);
        }
    }

    fn close(&mut self, said: &mut Vec<StreamEvent>) {
        let block = std::mem::take(&mut self.block);
        let seal = |text: &str| match &block {
            OpenBlock::Thinking { signature } => {
                json!({ "type": "thinking", "thinking": text, "signature": signature })
            }
            OpenBlock::Redacted(block) => block.clone(),
            _ => Value::Null,
        };
        self.items.close(seal, said);
        if let OpenBlock::Call {
            id: call_id,
            name,
            whole,
            arguments,
        } = block
        {
            let arguments = match arguments.is_empty() && whole.is_object() {
                true => whole.to_string(),
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

    fn stop(&mut self, reason: &str, said: &mut Vec<StreamEvent>) -> Result<(), CallError> {
        let fault = match reason {
            "max_tokens" => VendorFault::CutShort,
            "model_context_window_exceeded" => VendorFault::ContextFull,
            "refusal" => VendorFault::Policy,
            _ => {
                self.finish(said);
                return Ok(());
            }
        };
        Err(vendor::stopped(fault, reason))
    }

    fn complete(&mut self, said: &mut Vec<StreamEvent>) {
        self.finish(said);
        said.push(StreamEvent::Completed(self.tokens()));
    }

    fn finish(&mut self, said: &mut Vec<StreamEvent>) {
        self.is_finished = true;
        self.close(said);
        said.append(&mut self.calls);
    }

    /// What is said of the cost later is more exact.
    fn spend(&mut self, usage: &Value) {
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
            // Here the cached ones are counted apart.
            input: tokens("input_tokens")?
                .saturating_add(cached)
                .saturating_add(written),
            cached,
            cache_written: written,
            output: tokens("output_tokens")?,
            // This wire has no word for it.
            reasoning: 0,
        })
    }
}
