//! Reading this wire's events.

use serde_json::{Value, json};

use super::{CALL, SIGNATURE};
use crate::open_items::{OpenItems, TextKind};
use crate::usage::count;
use crate::vendor::{self, VendorMessage};
use crate::{CallError, CallForm, StreamEvent, Tokens, VendorFault, stream};

/// Reads events, each of which holds some parts of the answer.
#[derive(Debug, Default)]
pub(crate) struct GeminiReader {
    items: OpenItems,
    /// What the message that is open is sealed with.
    signature: Option<String>,
    /// Calls wait until it is known that the answer ended well.
    calls: Vec<StreamEvent>,
    /// The vendor's name for the answer.
    id: String,
    tokens: Option<Tokens>,
    is_finished: bool,
}

impl stream::WireReader for GeminiReader {
    fn read(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        let event: Value =
            serde_json::from_str(data).map_err(|error| CallError::Malformed(error.to_string()))?;
        if !event["error"].is_null() {
            let words = VendorMessage::of(&event["error"]);
            return Err(CallError::Vendor(Box::new(words.error(None))));
        }
        if let Some(reason) = event["promptFeedback"]["blockReason"].as_str() {
            return Err(vendor::stopped(VendorFault::Policy, reason));
        }
        if !event["candidates"].is_array() && !event["usageMetadata"].is_object() {
            let what = "an event has no candidates; does base_url lead to a Gemini API?";
            return Err(CallError::Malformed(what.to_owned()));
        }
        if self.id.is_empty() {
            let id = event["responseId"].as_str().unwrap_or_default();
            id.clone_into(&mut self.id);
        }
        if event["usageMetadata"].is_object() {
            self.tokens = tokens(&event["usageMetadata"]);
        }
        let candidate = &event["candidates"][0];
        for part in candidate["content"]["parts"]
            .as_array()
            .into_iter()
            .flatten()
        {
            self.read_part(part, said);
        }
        if self.calls.len() > stream::ITEMS_MAX {
            return Err(stream::too_many_items());
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.stop(reason)?;
        }
        Ok(true)
    }

    /// Here an answer has no last word but its end: some say with every event that they stop.
    fn end(&mut self, said: &mut Vec<StreamEvent>) {
        if self.is_finished {
            self.close(Value::Null, said);
            said.append(&mut self.calls);
            said.push(StreamEvent::Completed(self.tokens));
        }
    }
}

impl GeminiReader {
    fn read_part(&mut self, part: &Value, said: &mut Vec<StreamEvent>) {
        let signature = part[SIGNATURE].as_str();
        if part["functionCall"].is_object() {
            return self.call(&part["functionCall"], signature, said);
        }
        let speech = match part["thought"] == true {
            true => TextKind::Summary,
            false => TextKind::Message,
        };
        if let Some(text) = part["text"].as_str().filter(|it| !it.is_empty()) {
            if self.items.open().is_some_and(|open| open != speech) {
                self.close(Value::Null, said);
            }
            self.items.say(speech, text, said);
        }
        if let Some(signature) = signature {
            self.signature = Some(signature.to_owned());
        }
    }

    /// A call that is sealed is sealed by the thinking before it, which is made if there is none.
    fn call(&mut self, call: &Value, signature: Option<&str>, said: &mut Vec<StreamEvent>) {
        let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
        let call_id = match text("id") {
            id if id.is_empty() => format!("call-{}-{}", self.id, self.calls.len()),
            id => id,
        };
        if let Some(signature) = signature {
            if self.items.open() != Some(TextKind::Summary) {
                self.close(Value::Null, said);
                self.items.say(TextKind::Summary, "", said);
            }
            self.close(json!({ SIGNATURE: signature, CALL: call_id }), said);
        }
        self.calls.push(StreamEvent::Call {
            call_id,
            name: text("name"),
            arguments: match &call["args"] {
                Value::Null => "{}".to_owned(),
                args => args.to_string(),
            },
            form: CallForm::Function,
        });
    }

    fn close(&mut self, thinking: Value, said: &mut Vec<StreamEvent>) {
        let signature = self.signature.take();
        let first = said.len();
        self.items.close(|_| thinking, said);
        if let Some(StreamEvent::Message { sealed, .. }) = said.get_mut(first) {
            *sealed = signature.map(|it| json!({ SIGNATURE: it }));
        }
    }

    fn stop(&mut self, reason: &str) -> Result<(), CallError> {
        let fault = match reason {
            // The last is not the vendor's word, but that of servers that stand in for it.
            "STOP" | "FINISH_REASON_UNSPECIFIED" | "FUNCTION_CALL" => {
                self.is_finished = true;
                return Ok(());
            }
            "MAX_TOKENS" => VendorFault::CutShort,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" => VendorFault::Policy,
            // A call that cannot be read, and what is not known: it may go well the next time.
            _ => VendorFault::Internal,
        };
        Err(vendor::stopped(fault, reason))
    }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let reasoning = count(&usage["thoughtsTokenCount"])?;
    Some(Tokens {
        input: count(&usage["promptTokenCount"])?,
        cached: count(&usage["cachedContentTokenCount"])?,
        // Here the thinking is counted apart.
        output: count(&usage["candidatesTokenCount"])?.saturating_add(reasoning),
        reasoning,
        ..Tokens::default()
    })
}
