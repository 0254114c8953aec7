//! Writes an answer in the format of Gemini.

use serde_json::{Value, json};

use super::{AnswerMeta, OutputKind, WireWriter, data, in_json};
use crate::scripted::fault::{FaultReply, StopReason};
use crate::{CallForm, Tokens, WireFormat};

/// Writes parts, each in a separate event.
pub(super) struct GeminiWriter {
    head: AnswerMeta,
    calls: usize,
    open: OutputKind,
}

impl GeminiWriter {
    pub(super) fn new(head: AnswerMeta) -> Self {
        Self {
            head,
            calls: 0,
            open: OutputKind::Text,
        }
    }

    fn event(&self, candidate: &Value) -> Value {
        let id = format!("resp-{}", self.head.number);
        json!({ "candidates": [candidate], "modelVersion": self.head.model, "responseId": id })
    }

    fn part(&self, part: &Value, out: &mut Vec<u8>) {
        let content = json!({ "role": "model", "parts": [part] });
        let event = self.event(&json!({ "index": 0, "content": content }));
        data(&event, out);
    }

    /// Returns a signature in base64, as the vendor's own client requires. Its content is of no
    /// interest.
    fn seal(&self) -> String {
        let mut seal = format!("sealed/{}/", self.head.number);
        while !seal.len().is_multiple_of(4) {
            seal.push('A');
        }
        seal
    }

    fn last(&self, reason: &str) -> Value {
        let content = json!({ "role": "model", "parts": [{ "text": "" }] });
        self.event(&json!({ "index": 0, "content": content, "finishReason": reason }))
    }
}

impl WireWriter for GeminiWriter {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.part(&json!({ "text": "" }), out);
    }

    fn start(&mut self, kind: OutputKind, _: &mut Vec<u8>) {
        self.open = kind;
    }

    fn piece(&mut self, text: &str, out: &mut Vec<u8>) {
        let part = match self.open {
            OutputKind::Text => json!({ "text": text }),
            OutputKind::Reasoning => json!({ "text": text, "thought": true }),
        };
        self.part(&part, out);
    }

    fn stop(&mut self, _: OutputKind, _: &str, _: &mut Vec<u8>) {}

    fn refusal(&mut self, text: &str, out: &mut Vec<u8>) {
        self.part(&json!({ "text": text }), out);
    }

    fn call(&mut self, name: &str, arguments: &str, form: CallForm, out: &mut Vec<u8>) {
        let arguments: Value = serde_json::from_str(&in_json(arguments, form)).unwrap_or_default();
        let id = self.head.id("call", self.calls);
        let mut part = json!({ "functionCall": { "id": id, "name": name, "args": arguments } });
        // Of several calls the first has a signature.
        if self.calls == 0 {
            part["thoughtSignature"] = self.seal().into();
        }
        self.calls += 1;
        self.part(&part, out);
    }

    fn complete(&mut self, tokens: Tokens, out: &mut Vec<u8>) {
        let mut last = self.last("STOP");
        last["usageMetadata"] = json!({
            "promptTokenCount": tokens.input,
            "cachedContentTokenCount": tokens.cached,
            "candidatesTokenCount": tokens.output.saturating_sub(tokens.reasoning),
            "thoughtsTokenCount": tokens.reasoning,
            "totalTokenCount": tokens.input + tokens.output,
        });
        data(&last, out);
    }

    fn failed(&mut self, reply: &FaultReply, message: &str, out: &mut Vec<u8>) {
        data(
            &json!({ "error": reply.error(WireFormat::Gemini, message) }),
            out,
        );
    }

    fn incomplete(&mut self, stop: StopReason, out: &mut Vec<u8>) {
        let reason = match stop {
            StopReason::Length => "MAX_TOKENS",
            StopReason::Filter => "SAFETY",
        };
        data(&self.last(reason), out);
    }
}
