//! Writes an answer in the format of OpenAI Responses.

use std::io::Write;

use serde_json::{Value, json};

use super::{AnswerMeta, OutputKind, WireWriter, pieces};
use crate::scripted::fault::{FaultReply, StopReason};
use crate::{CallForm, Tokens, WireFormat};

/// Writes events one after the other.
pub(super) struct ResponsesWriter {
    head: AnswerMeta,
    sequence: u64,
    /// Items that are complete.
    output: Vec<Value>,
    open: OpenOutput,
}

/// The output that is being streamed.
#[derive(Default)]
struct OpenOutput {
    item: Value,
    location: Value,
    delta: &'static str,
    /// The encoded members that locate its pieces.
    location_members: String,
}

impl ResponsesWriter {
    pub(super) fn new(head: AnswerMeta) -> Self {
        Self {
            head,
            sequence: 0,
            output: Vec::new(),
            open: OpenOutput::default(),
        }
    }

    fn event(&mut self, kind: &str, members: Value, out: &mut Vec<u8>) {
        let mut event = json!({ "type": kind, "sequence_number": self.sequence });
        if let (Value::Object(event), Value::Object(members)) = (&mut event, members) {
            event.extend(members);
        }
        self.sequence += 1;
        let _ = write!(out, "event: {kind}\ndata: {event}\n\n");
    }

    /// Writes a piece of a text without building a value, because there can be very many.
    fn delta(&mut self, kind: &str, location_members: &str, text: &str, out: &mut Vec<u8>) {
        let sequence = self.sequence;
        self.sequence += 1;
        let _ = write!(
            out,
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{sequence},{location_members},\"delta\":"
        );
        // A text in memory can always be encoded.
        let _ = serde_json::to_writer(&mut *out, text);
        out.extend_from_slice(b"}\n\n");
    }

    fn added(&mut self, item: &Value, out: &mut Vec<u8>) {
        let members = json!({ "output_index": self.output.len(), "item": item });
        self.event("response.output_item.added", members, out);
    }

    fn done(&mut self, item: Value, out: &mut Vec<u8>) {
        let members = json!({ "output_index": self.output.len(), "item": item });
        self.event("response.output_item.done", members, out);
        self.output.push(item);
    }

    fn response(&self, status: &str) -> Value {
        json!({
            "id": format!("resp_{}", self.head.number),
            "object": "response",
            "created_at": self.head.created,
            "status": status,
            "model": self.head.model,
            "output": [],
            "parallel_tool_calls": true,
            "tool_choice": "auto",
            "tools": [],
        })
    }

    fn id(&self, kind: &str) -> String {
        self.head.id(kind, self.output.len())
    }

    fn message(&self) -> Value {
        let id = self.id("msg");
        json!({ "id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": [] })
    }
}

impl WireWriter for ResponsesWriter {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let response = self.response("in_progress");
        for kind in ["response.created", "response.in_progress"] {
            self.event(kind, json!({ "response": response }), out);
        }
    }

    fn start(&mut self, kind: OutputKind, out: &mut Vec<u8>) {
        let at = self.output.len();
        let (item, part, index, added, delta) = match kind {
            OutputKind::Text => (
                self.message(),
                json!({ "type": "output_text", "text": "", "annotations": [] }),
                "content_index",
                "response.content_part.added",
                "response.output_text.delta",
            ),
            OutputKind::Reasoning => (
                json!({ "id": self.id("rs"), "type": "reasoning", "summary": [] }),
                json!({ "type": "summary_text", "text": "" }),
                "summary_index",
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.delta",
            ),
        };
        self.added(&item, out);
        let location = json!({ "item_id": item["id"], "output_index": at, index: 0 });
        self.event(added, with(&location, "part", &part), out);
        let location_members = match kind {
            OutputKind::Text => members(&with(&location, "logprobs", &json!([]))),
            OutputKind::Reasoning => members(&location),
        };
        self.open = OpenOutput {
            location_members,
            item,
            location,
            delta,
        };
    }

    fn piece(&mut self, text: &str, out: &mut Vec<u8>) {
        let location_members = std::mem::take(&mut self.open.location_members);
        self.delta(self.open.delta, &location_members, text, out);
        self.open.location_members = location_members;
    }

    fn stop(&mut self, kind: OutputKind, full_text: &str, out: &mut Vec<u8>) {
        let OpenOutput {
            mut item, location, ..
        } = std::mem::take(&mut self.open);
        let text = Value::from(full_text);
        match kind {
            OutputKind::Text => {
                let part = json!({ "type": "output_text", "text": full_text, "annotations": [] });
                let mut done = with(&location, "text", &text);
                done["logprobs"] = json!([]);
                self.event("response.output_text.done", done, out);
                self.event(
                    "response.content_part.done",
                    with(&location, "part", &part),
                    out,
                );
                item["status"] = "completed".into();
                item["content"] = json!([part]);
            }
            OutputKind::Reasoning => {
                let part = json!({ "type": "summary_text", "text": full_text });
                let done = "response.reasoning_summary_text.done";
                self.event(done, with(&location, "text", &text), out);
                let done = "response.reasoning_summary_part.done";
                self.event(done, with(&location, "part", &part), out);
                item["summary"] = json!([part]);
                let sealed = format!("sealed {}", item["id"].as_str().unwrap_or_default());
                item["encrypted_content"] = sealed.into();
            }
        }
        self.done(item, out);
    }

    fn refusal(&mut self, text: &str, out: &mut Vec<u8>) {
        let at = self.output.len();
        let mut item = self.message();
        self.added(&item, out);
        let location = json!({ "item_id": item["id"], "output_index": at, "content_index": 0 });
        let part = |text: &str| json!({ "type": "refusal", "refusal": text });
        let added = with(&location, "part", &part(""));
        self.event("response.content_part.added", added, out);
        self.delta("response.refusal.delta", &members(&location), text, out);
        let done = with(&location, "refusal", &text.into());
        self.event("response.refusal.done", done, out);
        let done = with(&location, "part", &part(text));
        self.event("response.content_part.done", done, out);
        item["status"] = "completed".into();
        item["content"] = json!([part(text)]);
        self.done(item, out);
    }

    fn call(&mut self, name: &str, arguments: &str, form: CallForm, out: &mut Vec<u8>) {
        let at = self.output.len();
        let call_id = self.id("call");
        let (kind, prefix, member, delta) = match form {
            CallForm::Function => (
                "function_call",
                "fc",
                "arguments",
                "response.function_call_arguments",
            ),
            CallForm::Freeform => (
                "custom_tool_call",
                "ctc",
                "input",
                "response.custom_tool_call_input",
            ),
        };
        let id = self.id(prefix);
        let mut item = json!({ "id": id, "type": kind, "status": "in_progress", "call_id": call_id, "name": name, member: "" });
        self.added(&item, out);
        let location = json!({ "item_id": id, "output_index": at });
        for piece in pieces(arguments, 16) {
            self.delta(&format!("{delta}.delta"), &members(&location), piece, out);
        }
        item[member] = arguments.into();
        let done = with(&location, member, &item[member]);
        self.event(&format!("{delta}.done"), done, out);
        item["status"] = "completed".into();
        self.done(item, out);
    }

    fn complete(&mut self, tokens: Tokens, out: &mut Vec<u8>) {
        let mut response = self.response("completed");
        response["output"] = Value::Array(std::mem::take(&mut self.output));
        response["usage"] = json!({
            "input_tokens": tokens.input,
            "input_tokens_details": { "cached_tokens": tokens.cached, "cache_write_tokens": tokens.cache_written },
            "output_tokens": tokens.output,
            "output_tokens_details": { "reasoning_tokens": tokens.reasoning },
            "total_tokens": tokens.input + tokens.output,
        });
        self.event("response.completed", json!({ "response": response }), out);
    }

    fn failed(&mut self, reply: &FaultReply, message: &str, out: &mut Vec<u8>) {
        let mut response = self.response("failed");
        response["error"] = reply.error(WireFormat::Responses, message);
        self.event("response.failed", json!({ "response": response }), out);
    }

    fn incomplete(&mut self, stop: StopReason, out: &mut Vec<u8>) {
        let reason = match stop {
            StopReason::Length => "max_output_tokens",
            StopReason::Filter => "content_filter",
        };
        let mut response = self.response("incomplete");
        response["output"] = Value::Array(std::mem::take(&mut self.output));
        response["incomplete_details"] = json!({ "reason": reason });
        self.event("response.incomplete", json!({ "response": response }), out);
    }
}

/// Returns the location with one more member.
fn with(location: &Value, name: &str, value: &Value) -> Value {
    let mut members = location.clone();
    members[name] = value.clone();
    members
}

/// Returns the members of an object without its braces.
fn members(object: &Value) -> String {
    let text = object.to_string();
    text[1..text.len() - 1].to_owned()
}
