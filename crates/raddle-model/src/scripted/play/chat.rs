//! Writes an answer in the format of OpenAI Chat Completions.

use serde_json::{Value, json};

use super::{AnswerMeta, OutputKind, WireWriter, data, in_json, pieces};
use crate::scripted::fault::{FaultReply, StopReason};
use crate::{CallForm, Tokens, WireFormat};

/// Writes pieces of one message.
pub(super) struct ChatWriter {
    head: AnswerMeta,
    calls: usize,
    /// The member that the pieces belong to.
    member: &'static str,
}

impl ChatWriter {
    pub(super) fn new(head: AnswerMeta) -> Self {
        Self {
            head,
            calls: 0,
            member: "content",
        }
    }

    fn chunk(&self, choices: &Value) -> Value {
        let id = format!("chatcmpl-{}", self.head.number);
        json!({ "id": id, "object": "chat.completion.chunk", "created": self.head.created,
            "model": self.head.model, "choices": choices })
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
        data(&self.chunk(&choices), out);
    }

    fn finish(&self, reason: &str, out: &mut Vec<u8>) {
        let choices = json!([{ "index": 0, "delta": {}, "finish_reason": reason }]);
        data(&self.chunk(&choices), out);
    }
}

impl WireWriter for ChatWriter {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.delta(&json!({ "role": "assistant", "content": null }), out);
    }

    fn start(&mut self, kind: OutputKind, _: &mut Vec<u8>) {
        self.member = match kind {
            OutputKind::Text => "content",
            OutputKind::Reasoning => "reasoning_content",
        };
    }

    fn piece(&mut self, text: &str, out: &mut Vec<u8>) {
        self.delta(&json!({ self.member: text }), out);
    }

    fn stop(&mut self, _: OutputKind, _: &str, _: &mut Vec<u8>) {}

    fn refusal(&mut self, text: &str, out: &mut Vec<u8>) {
        self.delta(&json!({ "refusal": text }), out);
    }

    fn call(&mut self, name: &str, arguments: &str, form: CallForm, out: &mut Vec<u8>) {
        let at = self.calls;
        self.calls += 1;
        let arguments = &*in_json(arguments, form);
        let first = json!({ "index": at, "id": self.head.id("call", at), "type": "function",
            "function": { "name": name, "arguments": "" } });
        self.delta(&json!({ "tool_calls": [first] }), out);
        for piece in pieces(arguments, 16) {
            let next = json!({ "index": at, "function": { "arguments": piece } });
            self.delta(&json!({ "tool_calls": [next] }), out);
        }
    }

    fn complete(&mut self, tokens: Tokens, out: &mut Vec<u8>) {
        self.finish(if self.calls > 0 { "tool_calls" } else { "stop" }, out);
        let mut last = self.chunk(&json!([]));
        last["usage"] = json!({
            "prompt_tokens": tokens.input,
            "prompt_tokens_details": { "cached_tokens": tokens.cached, "cache_write_tokens": tokens.cache_written },
            "completion_tokens": tokens.output,
            "completion_tokens_details": { "reasoning_tokens": tokens.reasoning },
            "total_tokens": tokens.input + tokens.output,
        });
        data(&last, out);
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn failed(&mut self, reply: &FaultReply, message: &str, out: &mut Vec<u8>) {
        let error = reply.error(WireFormat::Chat, message);
        data(&json!({ "error": error }), out);
    }

    fn incomplete(&mut self, stop: StopReason, out: &mut Vec<u8>) {
        self.finish(
            match stop {
                StopReason::Length => "length",
                StopReason::Filter => "content_filter",
            },
            out,
        );
    }
}
