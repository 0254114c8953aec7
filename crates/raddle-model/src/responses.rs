//! The OpenAI Responses wire.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::http::{Endpoint, IDLE};
use crate::{CallError, Decoder};

/// What a model is asked, in this wire's words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// The model.
    pub model: String,
    /// What it should know before everything else.
    pub instructions: String,
    /// What was said so far, as this wire's items.
    pub input: Vec<Value>,
    /// How hard it should think.
    pub effort: Option<String>,
    /// A schema that its answer must fit.
    pub output_schema: Option<Value>,
}

impl Request {
    fn body(&self) -> Value {
        let mut body = json!({
            "model": self.model,
            "instructions": self.instructions,
            "input": self.input,
            "stream": true,
            "store": false,
        });
        if let Some(effort) = &self.effort {
            body["reasoning"] = json!({ "effort": effort });
        }
        if let Some(schema) = &self.output_schema {
            body["text"] = json!({
                "format": { "type": "json_schema", "name": "answer", "schema": schema, "strict": true }
            });
        }
        body
    }
}

/// What a model says.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An item begins.
    Started {
        /// The vendor's id for it.
        id: String,
        /// What it is.
        kind: ItemKind,
    },
    /// A message grows.
    Text {
        /// Which.
        id: String,
        /// By what.
        text: String,
    },
    /// A reasoning summary grows.
    Summary {
        /// Which item.
        id: String,
        /// Which part of it.
        part: u32,
        /// By what.
        text: String,
    },
    /// A message is whole.
    Message {
        /// Which.
        id: String,
        /// All of it.
        text: String,
        /// What part of the answer it is, in the vendor's word.
        phase: Option<String>,
    },
    /// The thinking is over.
    Reasoning {
        /// Which.
        id: String,
        /// Its summary, part by part.
        summary: Vec<String>,
        /// The item as it came, for the vendor's eyes.
        sealed: Value,
    },
    /// It calls a function.
    Call {
        /// The call's id.
        call_id: String,
        /// The function.
        name: String,
        /// Its arguments, as written.
        arguments: String,
    },
    /// It has said everything.
    Completed(Option<Tokens>),
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A message.
    Message,
    /// Thinking.
    Reasoning,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Sent, cached ones included.
    pub input: u64,
    /// Of these, read from a cache.
    pub cached: u64,
    /// Produced, reasoning included.
    pub output: u64,
    /// Of these, reasoning.
    pub reasoning: u64,
}

/// An answer on its way. Dropping it ends the call.
#[derive(Debug)]
pub struct Stream {
    body: Incoming,
    decoder: Decoder,
    is_completed: bool,
}

/// Asks a model.
pub async fn stream(endpoint: &Endpoint, request: &Request) -> Result<Stream, CallError> {
    let body = serde_json::to_vec(&request.body())
        .map_err(|error| CallError::Malformed(error.to_string()))?;
    let response = endpoint.post("/responses", body).await?;
    Ok(Stream {
        body: response.into_body(),
        decoder: Decoder::new(),
        is_completed: false,
    })
}

impl Stream {
    /// What is said next; nothing after [`Event::Completed`].
    pub async fn next(&mut self) -> Result<Option<Event>, CallError> {
        while !self.is_completed {
            let event = self.decoder.next_event();
            match event.map_err(|what| CallError::Malformed(what.to_owned()))? {
                Some(data) => {
                    if let Some(event) = read(&data)? {
                        self.is_completed = matches!(event, Event::Completed(_));
                        return Ok(Some(event));
                    }
                }
                None => {
                    let bytes = self.more().await?;
                    self.decoder.push(&bytes);
                }
            }
        }
        Ok(None)
    }

    async fn more(&mut self) -> Result<Bytes, CallError> {
        loop {
            let broke_off = |what: String| CallError::BrokeOff(what);
            let frame = timeout(IDLE, self.body.frame())
                .await
                .map_err(|_| broke_off("nothing came for too long".to_owned()))?
                .ok_or_else(|| broke_off("it ended in the middle".to_owned()))?
                .map_err(|error| broke_off(error.to_string()))?;
            if let Ok(bytes) = frame.into_data() {
                return Ok(bytes);
            }
        }
    }
}

/// The members of an event that are looked at. Which are there depends on its type.
#[derive(Debug, Deserialize)]
struct Wire {
    #[serde(rename = "type")]
    kind: String,
    item_id: Option<String>,
    delta: Option<String>,
    summary_index: Option<u32>,
    item: Option<Value>,
    response: Option<Value>,
    message: Option<String>,
    code: Option<String>,
}

/// Reads an event; nothing for those that say nothing new.
fn read(data: &str) -> Result<Option<Event>, CallError> {
    if data == "[DONE]" {
        return Ok(None);
    }
    let wire: Wire =
        serde_json::from_str(data).map_err(|error| CallError::Malformed(error.to_string()))?;
    let id = wire.item_id.clone().unwrap_or_default();
    let text = wire.delta.clone().unwrap_or_default();
    Ok(match wire.kind.as_str() {
        "response.output_item.added" => wire.item.as_ref().and_then(started),
        "response.output_text.delta" => Some(Event::Text { id, text }),
        "response.reasoning_summary_text.delta" => Some(Event::Summary {
            id,
            part: wire.summary_index.unwrap_or_default(),
            text,
        }),
        "response.output_item.done" => wire.item.and_then(done),
        "response.completed" => Some(Event::Completed(wire.response.as_ref().and_then(tokens))),
        "response.failed" | "response.incomplete" | "error" => return Err(failed(&wire)),
        _ => None,
    })
}

fn text_of(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn started(item: &Value) -> Option<Event> {
    let kind = match item["type"].as_str()? {
        "message" => ItemKind::Message,
        "reasoning" => ItemKind::Reasoning,
        _ => return None,
    };
    Some(Event::Started {
        id: text_of(item, "id"),
        kind,
    })
}

fn done(item: Value) -> Option<Event> {
    let texts = |member: &str| {
        let parts = item[member].as_array().map_or(&[][..], Vec::as_slice);
        parts
            .iter()
            .map(|part| text_of(part, "text"))
            .collect::<Vec<_>>()
    };
    match item["type"].as_str()? {
        "message" => Some(Event::Message {
            id: text_of(&item, "id"),
            text: texts("content").concat(),
            phase: item["phase"].as_str().map(str::to_owned),
        }),
        "reasoning" => Some(Event::Reasoning {
            id: text_of(&item, "id"),
            summary: texts("summary"),
            sealed: item,
        }),
        "function_call" => Some(Event::Call {
            call_id: text_of(&item, "call_id"),
            name: text_of(&item, "name"),
            arguments: text_of(&item, "arguments"),
        }),
        _ => None,
    }
}

fn tokens(response: &Value) -> Option<Tokens> {
    let usage = response["usage"].as_object()?;
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    Some(Tokens {
        input: count(&usage["input_tokens"]),
        cached: count(&response["usage"]["input_tokens_details"]["cached_tokens"]),
        output: count(&usage["output_tokens"]),
        reasoning: count(&response["usage"]["output_tokens_details"]["reasoning_tokens"]),
    })
}

fn failed(wire: &Wire) -> CallError {
    let error = wire
        .response
        .as_ref()
        .map_or(&Value::Null, |it| &it["error"]);
    let code = error["code"].as_str().map(str::to_owned);
    let message = error["message"].as_str().map(str::to_owned);
    CallError::Failed {
        code: code.or_else(|| wire.code.clone()),
        message: message
            .or_else(|| wire.message.clone())
            .unwrap_or_else(|| "the vendor gave no reason".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read() {
        let call = json!({"type":"response.output_item.done","item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}});
        let cases = [
            (json!({"type":"response.created"}), None),
            (
                json!({"type":"response.output_item.added","item":{"type":"message","id":"m"}}),
                Some(Event::Started {
                    id: "m".into(),
                    kind: ItemKind::Message,
                }),
            ),
            (
                json!({"type":"response.output_text.delta","item_id":"m","delta":"he"}),
                Some(Event::Text {
                    id: "m".into(),
                    text: "he".into(),
                }),
            ),
            (
                json!({"type":"response.output_item.done","item":{"type":"message","id":"m","content":[{"type":"output_text","text":"he"},{"type":"output_text","text":"y"}]}}),
                Some(Event::Message {
                    id: "m".into(),
                    text: "hey".into(),
                    phase: None,
                }),
            ),
            (
                call,
                Some(Event::Call {
                    call_id: "c".into(),
                    name: "f".into(),
                    arguments: "{}".into(),
                }),
            ),
            (
                json!({"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}}}),
                Some(Event::Completed(Some(Tokens {
                    input: 7,
                    cached: 0,
                    output: 2,
                    reasoning: 1,
                }))),
            ),
        ];
        for (wire, wanted) in cases {
            assert_eq!(read(&wire.to_string()), Ok(wanted), "{wire}");
        }
    }

    #[test]
    fn failures_are_typed() {
        let failed = json!({"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"slow down"}}});
        assert_eq!(
            read(&failed.to_string()),
            Err(CallError::Failed {
                code: Some("rate_limit_exceeded".into()),
                message: "slow down".into(),
            })
        );
        assert!(matches!(read("{"), Err(CallError::Malformed(_))));
        assert_eq!(read("[DONE]"), Ok(None));
    }
}
