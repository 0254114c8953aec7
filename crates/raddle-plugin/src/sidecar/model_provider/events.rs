//! The events of an answer, from the form of a plugin to that of the agent.

use std::collections::VecDeque;

use raddle_core::ports::ModelEvent;
use raddle_core::{
    AgentMessage, AppendText, ItemBody, ItemId, ItemPart, ItemUpdate, Reasoning, ToolCall, Usage,
};
use serde::Deserialize;
use serde_json::Value;

/// Limit: one model answer of a plugin; beyond it, the call fails.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Smallest size that an event counts.
const EVENT_BYTES_MIN: usize = 16;

/// An event that a plugin sends while it answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnswerEvent {
    /// Text of the answer.
    Text { text: String },
    /// Text of the reasoning.
    Reasoning { text: String },
    /// A call of a tool.
    ToolCall {
        id: String,
        name: String,
        /// JSON, or a text that contains it.
        #[serde(default)]
        arguments: Value,
    },
}

/// The result of a call, at the end of the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AnswerResult {
    usage: Option<TokenCounts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenCounts {
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
}

/// Reason why an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventError {
    #[error("an event of the answer cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
}

/// Collects the events of one answer. Consecutive texts of one kind are one item.
#[derive(Default)]
pub(super) struct AnswerEvents {
    ready: VecDeque<ModelEvent>,
    open: Option<OpenItem>,
    /// Size of the answer so far.
    bytes: usize,
}

struct OpenItem {
    id: ItemId,
    is_reasoning: bool,
    text: String,
}

impl AnswerEvents {
    /// Adds an event of the plugin.
    pub(super) fn add(&mut self, event: Value) -> Result<(), EventError> {
        match serde_json::from_value(event)? {
            AnswerEvent::Text { text } => self.append(false, text)?,
            AnswerEvent::Reasoning { text } => self.append(true, text)?,
            AnswerEvent::ToolCall {
                id,
                name,
                arguments,
            } => {
                self.close();
                let arguments = match arguments {
                    Value::String(text) => text,
                    Value::Null => "{}".to_owned(),
                    other => other.to_string(),
                };
                self.count(id.len() + name.len() + arguments.len())?;
                let call = ToolCall {
                    id,
                    tool: name,
                    arguments,
                    freeform: false,
                    alone: false,
                };
                let event = ModelEvent::Tool(ItemId::mint(), call);
                self.ready.push_back(event);
            }
        }
        Ok(())
    }

    /// Ends the last item, and returns the usage that the result of the call contains.
    pub(super) fn end(&mut self, result: Value) -> Option<Usage> {
        self.close();
        // A plugin may return anything.
        let result: AnswerResult = serde_json::from_value(result).unwrap_or_default();
        result.usage.map(|it| Usage {
            input: it.input_tokens,
            cached: it.cached_tokens,
            cache_written: 0,
            output: it.output_tokens,
            reasoning: it.reasoning_tokens,
        })
    }

    /// Takes the next event of the agent.
    pub(super) fn take(&mut self) -> Option<ModelEvent> {
        self.ready.pop_front()
    }

    /// Adds to the size of the answer.
    fn count(&mut self, bytes: usize) -> Result<(), EventError> {
        self.bytes += bytes.max(EVENT_BYTES_MIN);
        match self.bytes > ANSWER_BYTES_MAX {
            true => Err(EventError::TooLong),
            false => Ok(()),
        }
    }

    fn append(&mut self, is_reasoning: bool, text: String) -> Result<(), EventError> {
        self.count(text.len())?;
        if self
            .open
            .as_ref()
            .is_some_and(|it| it.is_reasoning != is_reasoning)
        {
            self.close();
        }
        let open = self.open.get_or_insert_with(|| {
            let id = ItemId::mint();
            let body = match is_reasoning {
                true => ItemBody::Reasoning(Reasoning::default()),
                false => ItemBody::AgentMessage(AgentMessage::default()),
            };
            let started = ItemUpdate::Started(id.clone(), Box::new(body));
            self.ready.push_back(ModelEvent::Item(started));
            OpenItem {
                id,
                is_reasoning,
                text: String::new(),
            }
        });
        open.text.push_str(&text);
        let part = match is_reasoning {
            true => ItemPart::Summary(0),
            false => ItemPart::Text,
        };
        let appended = AppendText {
            item: open.id.clone(),
            part,
            text,
        };
        let event = ModelEvent::Item(ItemUpdate::Text(appended));
        self.ready.push_back(event);
        Ok(())
    }

    fn close(&mut self) {
        let Some(OpenItem {
            id,
            is_reasoning,
            text,
        }) = self.open.take()
        else {
            return;
        };
        let body = match is_reasoning {
            true => ItemBody::Reasoning(Reasoning {
                summary: vec![text],
                content: Vec::new(),
            }),
            false => ItemBody::AgentMessage(AgentMessage { text, phase: None }),
        };
        let completed = ItemUpdate::Completed(id, Box::new(body), None);
        self.ready.push_back(ModelEvent::Item(completed));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Describes an event in short.
    fn short(event: &ModelEvent) -> String {
        let body = |it: &ItemBody| match it {
            ItemBody::AgentMessage(it) => format!("message {:?}", it.text),
            ItemBody::Reasoning(it) => format!("reasoning {:?}", it.summary),
            other => format!("{other:?}"),
        };
        match event {
            ModelEvent::Item(ItemUpdate::Started(_, it)) => format!("started {}", body(it)),
            ModelEvent::Item(ItemUpdate::Text(it)) => format!("text {:?}", it.text),
            ModelEvent::Item(ItemUpdate::Completed(_, it, _)) => format!("completed {}", body(it)),
            ModelEvent::Tool(_, it) => format!("call {} {} {}", it.id, it.tool, it.arguments),
            ModelEvent::Ended(..) => "ended".to_owned(),
        }
    }

    #[test]
    fn texts_of_one_kind_are_one_item() {
        let mut events = AnswerEvents::default();
        for event in [
            json!({ "type": "reasoning", "text": "hm" }),
            json!({ "type": "text", "text": "I " }),
            json!({ "type": "text", "text": "look." }),
            json!({ "type": "tool_call", "id": "c1", "name": "t", "arguments": { "n": 1 } }),
            json!({ "type": "tool_call", "id": "c2", "name": "t", "arguments": "{\"n\":2}" }),
            json!({ "type": "text", "text": "Done." }),
        ] {
            events.add(event).expect("a valid event");
        }
        assert!(events.add(json!({ "type": "item/completed" })).is_err());
        let usage = events.end(json!({ "usage": { "input_tokens": 3, "output_tokens": 2 } }));
        assert_eq!(usage.map(|it| (it.input, it.output)), Some((3, 2)));
        assert_eq!(events.end(json!("anything")), None);
        let all: Vec<String> = std::iter::from_fn(|| events.take())
            .map(|it| short(&it))
            .collect();
        let expected = [
            "started reasoning []",
            "text \"hm\"",
            "completed reasoning [\"hm\"]",
            "started message \"\"",
            "text \"I \"",
            "text \"look.\"",
            "completed message \"I look.\"",
            "call c1 t {\"n\":1}",
            "call c2 t {\"n\":2}",
            "started message \"\"",
            "text \"Done.\"",
            "completed message \"Done.\"",
        ];
        assert_eq!(all, expected);
    }
    #[test]
    fn an_answer_has_a_bound() {
        let long = "x".repeat(ANSWER_BYTES_MAX / 4);
        for event in [
            json!({ "type": "text", "text": long }),
            json!({ "type": "tool_call", "id": "c", "name": "t", "arguments": long }),
        ] {
            let mut events = AnswerEvents::default();
            for _ in 0..3 {
                events.add(event.clone()).expect("within the bound");
                while events.take().is_some() {}
            }
            let reasoning = json!({ "type": "reasoning", "text": long });
            let error = [reasoning, event]
                .into_iter()
                .find_map(|it| events.add(it).err());
            assert!(matches!(error, Some(EventError::TooLong)), "{error:?}");
        }
    }
}
