//! Writes an answer in the format of Anthropic Messages.

use std::io::Write;

use serde_json::{Value, json};

use super::{AnswerMeta, OutputKind, WireWriter, in_json, pieces};
use crate::scripted::fault::{FaultReply, StopReason};
use crate::{CallForm, Tokens, WireFormat};

/// Writes a sequence of blocks.
pub(super) struct MessagesWriter {
    head: AnswerMeta,
    blocks: usize,
    has_called: bool,
    open: OutputKind,
}

impl MessagesWriter {
    pub(super) fn new(head: AnswerMeta) -> Self {
        Self {
            head,
            blocks: 0,
            has_called: false,
            open: OutputKind::Text,
        }
    }

    fn event(kind: &str, mut event: Value, out: &mut Vec<u8>) {
        event["type"] = kind.into();
        let _ = write!(out, "event: {kind}\ndata: {event}\n\n");
    }

    fn begin_block(&self, block: &Value, out: &mut Vec<u8>) {
        let event = json!({ "index": self.blocks, "content_block": block });
        Self::event("content_block_start", event, out);
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        let event = json!({ "index": self.blocks, "delta": delta });
        Self::event("content_block_delta", event, out);
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        Self::event("content_block_stop", json!({ "index": self.blocks }), out);
        self.blocks += 1;
    }

    fn end(reason: &str, usage: &Value, out: &mut Vec<u8>) {
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        Self::event(
            "message_delta",
            json!({ "delta": delta, "usage": usage }),
            out,
        );
        Self::event("message_stop", json!({}), out);
    }
}

impl WireWriter for MessagesWriter {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let id = format!("msg_{}", self.head.number);
        let message = json!({ "id": id, "type": "message", "role": "assistant", "model": self.head.model,
            "content": [], "stop_reason": null, "usage": { "input_tokens": 0, "output_tokens": 0 } });
        Self::event("message_start", json!({ "message": message }), out);
        Self::event("ping", json!({}), out);
    }

    fn start(&mut self, kind: OutputKind, out: &mut Vec<u8>) {
        self.open = kind;
        let block = match kind {
            OutputKind::Text => json!({ "type": "text", "text": "" }),
            OutputKind::Reasoning => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        };
        self.begin_block(&block, out);
    }

    fn piece(&mut self, text: &str, out: &mut Vec<u8>) {
        let delta = match self.open {
            OutputKind::Text => json!({ "type": "text_delta", "text": text }),
            OutputKind::Reasoning => json!({ "type": "thinking_delta", "thinking": text }),
        };
        self.delta(&delta, out);
    }

    fn stop(&mut self, kind: OutputKind, _: &str, out: &mut Vec<u8>) {
        if kind == OutputKind::Reasoning {
            let signature = format!("sealed {}", self.head.id("rs", self.blocks));
            let delta = json!({ "type": "signature_delta", "signature": signature });
            self.delta(&delta, out);
        }
        self.end_block(out);
    }

    fn refusal(&mut self, text: &str, out: &mut Vec<u8>) {
        self.start(OutputKind::Text, out);
        self.piece(text, out);
        self.end_block(out);
    }

    fn call(&mut self, name: &str, arguments: &str, form: CallForm, out: &mut Vec<u8>) {
        self.has_called = true;
        let id = self.head.id("toolu", self.blocks);
        let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        self.begin_block(&block, out);
        for piece in pieces(&in_json(arguments, form), 16) {
            let delta = json!({ "type": "input_json_delta", "partial_json": piece });
            self.delta(&delta, out);
        }
        self.end_block(out);
    }

    fn complete(&mut self, tokens: Tokens, out: &mut Vec<u8>) {
        let usage = json!({
            "input_tokens": tokens.input.saturating_sub(tokens.cached + tokens.cache_written),
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": tokens.cache_written,
            "output_tokens": tokens.output,
        });
        let reason = if self.has_called {
            "tool_use"
        } else {
            "end_turn"
        };
        Self::end(reason, &usage, out);
    }

    fn failed(&mut self, reply: &FaultReply, message: &str, out: &mut Vec<u8>) {
        let error = reply.error(WireFormat::Messages, message);
        Self::event("error", json!({ "error": error }), out);
    }

    fn incomplete(&mut self, stop: StopReason, out: &mut Vec<u8>) {
        let reason = match stop {
            StopReason::Length => "max_tokens",
            StopReason::Filter => "refusal",
        };
        Self::end(reason, &json!({ "output_tokens": 1 }), out);
    }
}
