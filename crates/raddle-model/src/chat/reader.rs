//! Reads the events of this wire.

use serde_json::{Map, Value};

use crate::open_items::{OpenItems, TextKind};
use crate::vendor_error::{VendorMessage, incomplete_answer};
use crate::{CallError, CallForm, StreamEvent, Tokens, VendorFault, usage, wire};

/// The member that holds an answer's thinking, by the names that vendors use. It goes back under
/// the name it came with.
const THINKING: [&str; 2] = ["reasoning_content", "reasoning"];

/// The parts of the thinking, from vendors that seal some of them.
const DETAILS: &str = "reasoning_details";

/// Reads events, which are pieces of one message.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    items: OpenItems,
    /// The member in which the open thinking came.
    thinking: &'static str,
    /// Its parts, where the vendor sends them separately.
    details: Vec<Value>,
    calls: Vec<PartialCall>,
    /// The vendor's id of the answer.
    id: String,
    tokens: Option<Tokens>,
    is_begun: bool,
    is_finished: bool,
}

/// A call whose pieces are still arriving.
#[derive(Debug, Default)]
struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl wire::WireReader for ChatReader {
    fn read(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        if data.trim() == "[DONE]" {
            if self.is_begun {
                self.complete(events);
            }
            return Ok(false);
        }
        let chunk: Value =
            serde_json::from_str(data).map_err(|error| CallError::Malformed(error.to_string()))?;
        let choice = &chunk["choices"][0];
        if let Some(error) = [&chunk["error"], &choice["error"]]
            .into_iter()
            .find(|it| !it.is_null())
        {
            return Err(CallError::Vendor(Box::new(
                VendorMessage::of(error).error(None),
            )));
        }
        if !chunk["choices"].is_array() && !chunk["usage"].is_object() {
            let message = "an event has no choices; does base_url lead to a Chat Completions API?";
            return Err(CallError::Malformed(message.to_owned()));
        }
        if self.id.is_empty() {
            chunk["id"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut self.id);
        }
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let has_tokens = chunk["usage"].is_object();
        if has_tokens {
            self.tokens = tokens(&chunk["usage"]);
        }
        let has_content = self.read_delta(&choice["delta"], events);
        if self.calls.len() > wire::ITEMS_MAX {
            return Err(wire::too_many_items());
        }
        match choice["finish_reason"].as_str() {
            None | Some("") => {}
            Some("length" | "max_tokens") => {
                return Err(incomplete_answer(VendorFault::CutShort, "length"));
            }
            Some(reason @ "content_filter") => {
                return Err(incomplete_answer(VendorFault::Policy, reason));
            }
            Some(reason @ "error") => {
                return Err(incomplete_answer(VendorFault::Internal, reason));
            }
            Some(_) => self.finish(events),
        }
        // Vendors send the usage with the end or after it, and some not at all.
        if self.is_finished && has_tokens {
            self.complete(events);
        }
        Ok(is_first || has_content || self.is_finished)
    }

    /// Completes the answer. Not every vendor sends `[DONE]` after the reason why it stopped.
    fn end(&mut self, events: &mut Vec<StreamEvent>) {
        if self.is_finished {
            self.complete(events);
        }
    }
}

impl ChatReader {
    /// Reads a piece of the message. Returns whether it had any content.
    fn read_delta(&mut self, delta: &Value, events: &mut Vec<StreamEvent>) -> bool {
        let text = |name: &str| delta[name].as_str().filter(|it| !it.is_empty());
        let mut has_content = false;
        if let Some((name, text)) = THINKING.iter().find_map(|it| Some((it, text(it)?))) {
            self.thinking = name;
            self.add_text(TextKind::Thought, text, events);
            has_content = true;
        }
        if let Some(details) = delta[DETAILS].as_array().filter(|it| !it.is_empty()) {
            // Opens an item if none is open: sealed parts have no text.
            self.add_text(TextKind::Thought, "", events);
            details.iter().for_each(|it| add(&mut self.details, it));
            has_content = true;
        }
        for name in ["content", "refusal"] {
            if let Some(text) = text(name) {
                self.add_text(TextKind::Message, text, events);
                has_content = true;
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
            has_content = true;
        }
        has_content
    }

    fn add_text(&mut self, kind: TextKind, text: &str, events: &mut Vec<StreamEvent>) {
        if self.items.open().is_some_and(|open| open != kind) {
            self.close(events);
        }
        self.items.add_text(kind, text, events);
    }

    fn close(&mut self, events: &mut Vec<StreamEvent>) {
        let (name, details) = (self.thinking, std::mem::take(&mut self.details));
        let seal = |text: &str| {
            let mut sealed = Map::new();
            if !text.is_empty() {
                sealed.insert(name.to_owned(), text.into());
            }
            if !details.is_empty() {
                sealed.insert(DETAILS.to_owned(), details.into());
            }
            Value::Object(sealed)
        };
        self.items.close(seal, events);
    }

    /// Adds a piece of a call. It belongs to the newest call with its index, unless it has another
    /// id: some vendors use one index for all.
    fn call(&mut self, piece: &Value) {
        let index = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let known = self.calls.iter_mut().rfind(|it| match index {
            Some(index) => it.index == index,
            None => id.is_empty() || it.id == id,
        });
        let known = known.filter(|it| id.is_empty() || it.id == id);
        let call = match known {
            Some(call) => call,
            None => {
                let index = index.unwrap_or(self.calls.len() as u64);
                self.calls.push(PartialCall {
                    index,
                    ..PartialCall::default()
                });
                let last = self.calls.len() - 1;
                &mut self.calls[last]
            }
        };
        let function = &piece["function"];
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            function["name"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut call.name);
        }
        match &function["arguments"] {
            Value::String(more) => call.arguments.push_str(more),
            Value::Null => {}
            whole => call.arguments = whole.to_string(),
        }
    }

    fn complete(&mut self, events: &mut Vec<StreamEvent>) {
        self.finish(events);
        events.push(StreamEvent::Completed(self.tokens));
    }

    /// Closes the message and sends its calls.
    fn finish(&mut self, events: &mut Vec<StreamEvent>) {
        self.is_finished = true;
        self.close(events);
        for (at, call) in self.calls.drain(..).enumerate() {
            let call_id = match call.id.is_empty() {
                true => format!("call-{}-{at}", self.id),
                false => call.id,
            };
            events.push(StreamEvent::Call {
                call_id,
                name: call.name,
                arguments: call.arguments,
                form: CallForm::Function,
            });
        }
    }
}

/// Appends a piece to the part with the same type and index.
fn add(details: &mut Vec<Value>, piece: &Value) {
    let last = details.last_mut().filter(|last| {
        last["type"] == piece["type"] && last["index"] == piece["index"] && piece["index"].is_u64()
    });
    let (Some(Value::Object(last)), Value::Object(piece)) = (last, piece) else {
        return details.push(piece.clone());
    };
    for (name, value) in piece {
        let grows = ["text", "summary", "data", "signature"].contains(&name.as_str());
        match (last.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more)) if grows => text.push_str(more),
            (Some(_), Value::Null) => {}
            _ => drop(last.insert(name.clone(), value.clone())),
        }
    }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    use usage::count;
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"])?;
    Some(Tokens {
        input: count(&usage["prompt_tokens"])?,
        // Some vendors have another name for it.
        cached: cached.max(count(&usage["prompt_cache_hit_tokens"])?),
        cache_written: count(&usage["prompt_tokens_details"]["cache_write_tokens"])?,
        output: count(&usage["completion_tokens"])?,
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"])?,
    })
}
