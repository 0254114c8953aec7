//! Reads the events of this wire.

use serde_json::{Value, json};

use crate::open_items::{OpenItems, TextKind};
use crate::usage::count;
use crate::vendor_error::{VendorMessage, incomplete_answer};
use crate::{CallError, CallForm, StreamEvent, Tokens, VendorFault, wire};

/// The member that holds the signature of a part.
pub(super) const SIGNATURE: &str = "thoughtSignature";

/// Member with the id of the call to which the signature belongs.
pub(super) const CALL: &str = "call";

/// Reads events, each of which holds some parts of the answer.
#[derive(Debug, Default)]
pub(crate) struct GeminiReader {
    items: OpenItems,
    /// The signature of the open message.
    signature: Option<String>,
    /// Calls are held back until the answer has ended without an error.
    calls: Vec<StreamEvent>,
    /// The vendor's id of the answer.
    id: String,
    tokens: Option<Tokens>,
    is_finished: bool,
}

impl wire::WireReader for GeminiReader {
    fn read(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> Result<bool, CallError> {
        let event: Value =
            serde_json::from_str(data).map_err(|error| CallError::Malformed(error.to_string()))?;
        if !event["error"].is_null() {
            let message = VendorMessage::of(&event["error"]);
            return Err(CallError::Vendor(Box::new(message.error(None))));
        }
        if let Some(reason) = event["promptFeedback"]["blockReason"].as_str() {
            return Err(incomplete_answer(VendorFault::Policy, reason));
        }
        if !event["candidates"].is_array() && !event["usageMetadata"].is_object() {
            let message = "an event has no candidates; does base_url lead to a Gemini API?";
            return Err(CallError::Malformed(message.to_owned()));
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
            self.read_part(part, events);
        }
        if self.calls.len() > wire::ITEMS_MAX {
            return Err(wire::too_many_items());
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.stop(reason)?;
        }
        Ok(true)
    }

    /// Completes the answer. Only the end of the stream marks it: some vendors send a stop reason
    /// with every event.
    fn end(&mut self, events: &mut Vec<StreamEvent>) {
        if self.is_finished {
            self.close(Value::Null, events);
            events.append(&mut self.calls);
            events.push(StreamEvent::Completed(self.tokens));
        }
    }
}

impl GeminiReader {
    fn read_part(&mut self, part: &Value, events: &mut Vec<StreamEvent>) {
        let signature = part[SIGNATURE].as_str();
        if part["functionCall"].is_object() {
            return self.call(&part["functionCall"], signature, events);
        }
        let kind = match part["thought"] == true {
            true => TextKind::Summary,
            false => TextKind::Message,
        };
        if let Some(text) = part["text"].as_str().filter(|it| !it.is_empty()) {
            if self.items.open().is_some_and(|open| open != kind) {
                self.close(Value::Null, events);
            }
            self.items.add_text(kind, text, events);
        }
        if let Some(signature) = signature {
            self.signature = Some(signature.to_owned());
        }
    }

    /// Adds a call. Its signature goes into the thinking before it, which is created if there is
    /// none.
    fn call(&mut self, call: &Value, signature: Option<&str>, events: &mut Vec<StreamEvent>) {
        let text = |name: &str| call[name].as_str().unwrap_or_default().to_owned();
        let call_id = match text("id") {
            id if id.is_empty() => format!("call-{}-{}", self.id, self.calls.len()),
            id => id,
        };
        if let Some(signature) = signature {
            if self.items.open() != Some(TextKind::Summary) {
                self.close(Value::Null, events);
                self.items.add_text(TextKind::Summary, "", events);
            }
            self.close(json!({ SIGNATURE: signature, CALL: call_id }), events);
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

    fn close(&mut self, thinking: Value, events: &mut Vec<StreamEvent>) {
        let signature = self.signature.take();
        let first = events.len();
        self.items.close(|_| thinking, events);
        if let Some(StreamEvent::Message { sealed, .. }) = events.get_mut(first) {
            *sealed = signature.map(|it| json!({ SIGNATURE: it }));
        }
    }

    fn stop(&mut self, reason: &str) -> Result<(), CallError> {
        let fault = match reason {
            // The last is not sent by the vendor, but by compatible servers.
            "STOP" | "FINISH_REASON_UNSPECIFIED" | "FUNCTION_CALL" => {
                self.is_finished = true;
                return Ok(());
            }
            "MAX_TOKENS" => VendorFault::CutShort,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" => VendorFault::Policy,
            // A malformed call or an unknown reason: a retry may succeed.
            _ => VendorFault::Internal,
        };
        Err(incomplete_answer(fault, reason))
    }
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let reasoning = count(&usage["thoughtsTokenCount"])?;
    Some(Tokens {
        input: count(&usage["promptTokenCount"])?,
        cached: count(&usage["cachedContentTokenCount"])?,
        // This wire counts the thinking separately.
        output: count(&usage["candidatesTokenCount"])?.saturating_add(reasoning),
        reasoning,
        ..Tokens::default()
    })
}
