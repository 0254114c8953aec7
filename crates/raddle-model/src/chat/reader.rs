//! Reading this wire's events.

use serde_json::{Map, Value};

use super::{DETAILS, THINKING};
use crate::open_items::{OpenItems, TextKind};
use crate::vendor::{self, VendorMessage};
use crate::{CallError, CallForm, StreamEvent, Tokens, VendorFault, stream, usage};

/// Reads events, which are pieces of one message.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    items: OpenItems,
    /// The member that the open thinking came in.
    thinking: &'static str,
    /// Its parts, where they have a form of their own.
    details: Vec<Value>,
    calls: Vec<PartialCall>,
    /// The vendor's name for the answer.
    id: String,
    tokens: Option<Tokens>,
    is_begun: bool,
    is_finished: bool,
}

/// A call as it grows.
#[derive(Debug, Default)]
struct PartialCall {
    place: u64,
    id: String,
    name: String,
    arguments: String,
}

impl stream::WireReader for ChatReader {
    fn read(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        if data.trim() == "[DONE]" {
            if self.is_begun {
                self.complete(said);
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
            let what = "an event has no choices; does base_url lead to a Chat Completions API?";
            return Err(CallError::Malformed(what.to_owned()));
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
        let says_more = self.read_delta(&choice["delta"], said);
        if self.calls.len() > stream::ITEMS_MAX {
            return Err(stream::too_many_items());
        }
        match choice["finish_reason"].as_str() {
            None | Some("") => {}
            Some("length" | "max_tokens") => {
                return Err(vendor::stopped(VendorFault::CutShort, "length"));
            }
            Some(reason @ "content_filter") => {
                return Err(vendor::stopped(VendorFault::Policy, reason));
            }
            Some(reason @ "error") => return Err(vendor::stopped(VendorFault::Internal, reason)),
            Some(_) => self.finish(said),
        }
        // What it cost is said with the end or behind it, and by some not at all.
        if self.is_finished && has_tokens {
            self.complete(said);
        }
        Ok(is_first || says_more || self.is_finished)
    }

    /// Not every vendor says that it is done after it has said why it stopped.
    fn end(&mut self, said: &mut Vec<StreamEvent>) {
        if self.is_finished {
            self.complete(said);
        }
    }
}

impl ChatReader {
    /// Takes a piece of the message. Answers whether there was something in it.
    fn read_delta(&mut self, delta: &Value, said: &mut Vec<StreamEvent>) -> bool {
        let text = |name: &str| delta[name].as_str().filter(|it| !it.is_empty());
        let mut is_something = false;
        if let Some((name, text)) = THINKING.iter().find_map(|it| Some((it, text(it)?))) {
            self.thinking = name;
            self.say(TextKind::Thought, text, said);
            is_something = true;
        }
        if let Some(details) = delta[DETAILS].as_array().filter(|it| !it.is_empty()) {
            // An item of its own if none is open: what is sealed has no words.
            self.say(TextKind::Thought, "", said);
            details.iter().for_each(|it| add(&mut self.details, it));
            is_something = true;
        }
        for name in ["content", "refusal"] {
            if let Some(text) = text(name) {
                self.say(TextKind::Message, text, said);
                is_something = true;
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
            is_something = true;
        }
        is_something
    }

    fn say(&mut self, speech: TextKind, text: &str, said: &mut Vec<StreamEvent>) {
        if self.items.open().is_some_and(|open| open != speech) {
            self.close(said);
        }
        self.items.say(speech, text, said);
    }

    fn close(&mut self, said: &mut Vec<StreamEvent>) {
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
        self.items.close(seal, said);
    }

    /// Takes a piece of a call. It belongs to the newest call at its place, unless it names another: some
    /// vendors have one place for all.
    fn call(&mut self, piece: &Value) {
        let place = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let known = self.calls.iter_mut().rfind(|it| match place {
            Some(place) => it.place == place,
            None => id.is_empty() || it.id == id,
        });
        let known = known.filter(|it| id.is_empty() || it.id == id);
        let call = match known {
            Some(call) => call,
            None => {
                let place = place.unwrap_or(self.calls.len() as u64);
                self.calls.push(PartialCall {
                    place,
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

    fn complete(&mut self, said: &mut Vec<StreamEvent>) {
        self.finish(said);
        said.push(StreamEvent::Completed(self.tokens));
    }

    /// The message is whole.
    fn finish(&mut self, said: &mut Vec<StreamEvent>) {
        self.is_finished = true;
        self.close(said);
        for (at, call) in self.calls.drain(..).enumerate() {
            let call_id = match call.id.is_empty() {
                true => format!("call-{}-{at}", self.id),
                false => call.id,
            };
            said.push(StreamEvent::Call {
                call_id,
                name: call.name,
                arguments: call.arguments,
                form: CallForm::Function,
            });
        }
    }
}

/// Adds a piece to the part that it belongs to.
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
            (Some(Value::String(said)), Value::String(more)) if grows => said.push_str(more),
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
        // Some have a name of their own for it.
        cached: cached.max(count(&usage["prompt_cache_hit_tokens"])?),
        cache_written: count(&usage["prompt_tokens_details"]["cache_write_tokens"])?,
        output: count(&usage["completion_tokens"])?,
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"])?,
    })
}
