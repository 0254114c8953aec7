//! Reading this wire's events.

use serde_json::{Map, Value, json};

use crate::growing::{Growing, Speech};
use crate::usage::count;
use crate::vendor::{self, Words};
use crate::{CallError, CallForm, Event, Fault, Tokens, stream};

/// Reads events. An answer is a row of blocks, of which one at a time is open.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    items: Growing,
    block: Block,
    /// Calls wait until it is known that the answer was not cut short in one of them.
    calls: Vec<Event>,
    usage: Map<String, Value>,
    is_finished: bool,
}

/// The block that is open.
#[derive(Debug, Default)]
enum Block {
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

impl stream::Reader for Reader {
    fn read(&mut self, data: &str, said: &mut Vec<Event>) -> Result<bool, CallError> {
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
                let words = Words::of(&event["error"]);
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

    fn end(&mut self, said: &mut Vec<Event>) {
        if self.is_finished {
            self.complete(said);
        }
    }
}

impl Reader {
    fn open(&mut self, block: &Value, said: &mut Vec<Event>) {
        self.close(said);
        let text = |name: &str| block[name].as_str().unwrap_or_default();
        self.block = match block["type"].as_str() {
            Some("text") => Block::Text,
            Some("thinking") => Block::Thinking {
                signature: text("signature").to_owned(),
            },
            Some("redacted_thinking") => Block::Redacted(block.clone()),
            Some("tool_use") => Block::Call {
                id: text("id").to_owned(),
                name: text("name").to_owned(),
                whole: block["input"].clone(),
                arguments: String::new(),
            },
            _ => Block::None,
        };
        match &self.block {
            Block::Text => self.say(text("text"), said),
            // It may have no words at all, and is sealed all the same.
            Block::Thinking { .. } => self.items.say(Speech::Summary, text("thinking"), said),
            Block::Redacted(_) => self.items.say(Speech::Summary, "", said),
            Block::Call { .. } | Block::None => {}
        }
    }

    fn grow(&mut self, delta: &Value, said: &mut Vec<Event>) {
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        match &mut self.block {
            Block::Text => self.say(text("text"), said),
            Block::Thinking { signature } => {
                signature.push_str(text("signature"));
                self.items.say(Speech::Summary, text("thinking"), said);
            }
            Block::Call { arguments, .. } => arguments.push_str(text("partial_json")),
            Block::Redacted(_) | Block::None => {}
        }
    }

    /// A message without words is none.
    fn say(&mut self, text: &str, said: &mut Vec<Event>) {
        if !text.is_empty() {
            self.items.say(Speech::Message, text, said);
        }
    }

    fn close(&mut self, said: &mut Vec<Event>) {
        let block = std::mem::take(&mut self.block);
        let seal = |text: &str| match &block {
            Block::Thinking { signature } => {
                json!({ "type": "thinking", "thinking": text, "signature": signature })
            }
            Block::Redacted(block) => block.clone(),
            _ => Value::Null,
        };
        self.items.close(seal, said);
        if let Block::Call {
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
            self.calls.push(Event::Call {
                call_id,
                name,
                arguments,
                form: CallForm::Function,
            });
        }
    }

    fn stop(&mut self, reason: &str, said: &mut Vec<Event>) -> Result<(), CallError> {
        let fault = match reason {
            "max_tokens" => Fault::CutShort,
            "model_context_window_exceeded" => Fault::ContextFull,
            "refusal" => Fault::Policy,
            _ => {
                self.finish(said);
                return Ok(());
            }
        };
        Err(vendor::stopped(fault, reason))
    }

    fn complete(&mut self, said: &mut Vec<Event>) {
        self.finish(said);
        said.push(Event::Completed(self.tokens()));
    }

    fn finish(&mut self, said: &mut Vec<Event>) {
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
