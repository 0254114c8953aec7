//! A scripted model.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use raddle_core::ports::{BoxFuture, Model, ModelAnswer, ModelEvent, Prompt};
use raddle_core::{
    AgentMessage, AppendText, ContextEntry, Failure, FailureKind, Input, ItemBody, ItemId,
    ItemPart, ItemUpdate, ModelEnd, Price, Sealed, Settings, SharedEntry, Timestamp, ToolCall,
    Usage,
};
use serde_json::json;
use tokio::sync::Notify;

/// One line of a script.
#[derive(Clone, Copy)]
pub enum ScriptLine {
    /// A whole message.
    Says(&'static str),
    /// A whole message with a sealed value of this depth.
    Seals(usize),
    /// A message without an end.
    Begins(&'static str),
    /// A tool call with these arguments.
    Calls(&'static str, &'static str),
    /// An error that is retried after a minute.
    Breaks,
    /// No further event.
    Hangs,
}

/// One list of lines per call.
pub struct ScriptedAnswers {
    calls: Mutex<VecDeque<Vec<ScriptLine>>>,
    prompts: Mutex<Vec<Vec<SharedEntry>>>,
    dropped: Arc<Notify>,
}

impl ScriptedAnswers {
    pub fn new(calls: &[&[ScriptLine]]) -> Self {
        Self {
            calls: Mutex::new(calls.iter().map(|lines| lines.to_vec()).collect()),
            prompts: Mutex::default(),
            dropped: Arc::default(),
        }
    }

    /// The prompt of each call as text, without notes.
    pub fn prompts(&self) -> Vec<String> {
        let render = |entries: &Vec<SharedEntry>| {
            let visible = entries
                .iter()
                .filter(|entry| !matches!(***entry, ContextEntry::Note(_)));
            visible
                .map(|entry| in_words(entry))
                .collect::<Vec<_>>()
                .join(" · ")
        };
        self.whole().iter().map(render).collect()
    }

    /// The notes of each prompt.
    pub fn notes(&self) -> Vec<Vec<String>> {
        let note = |entry: &SharedEntry| match &**entry {
            ContextEntry::Note(text) => Some(text.clone()),
            _ => None,
        };
        let notes = |entries: &Vec<SharedEntry>| entries.iter().filter_map(note).collect();
        self.whole().iter().map(notes).collect()
    }

    /// All entries of each prompt.
    pub fn whole(&self) -> Vec<Vec<SharedEntry>> {
        self.prompts.lock().expect("prompts").clone()
    }

    /// Resolves when an answer was dropped.
    pub async fn dropped(&self) {
        self.dropped.notified().await;
    }
}

impl Model for ScriptedAnswers {
    fn price<'a>(&'a self, _: &'a Settings) -> BoxFuture<'a, Option<Price>> {
        Box::pin(async { None })
    }

    fn call(&self, prompt: Prompt) -> Box<dyn ModelAnswer> {
        self.prompts.lock().expect("prompts").push(prompt.entries);
        let lines = self.calls.lock().expect("calls").pop_front();
        let mut events = VecDeque::new();
        let mut hangs = false;
        let mut end = ModelEnd::Done {};
        for line in lines.unwrap_or_default() {
            let id = ItemId::mint();
            let open = Box::new(ItemBody::AgentMessage(AgentMessage::default()));
            let append = |text: &str| AppendText {
                item: id.clone(),
                part: ItemPart::Text,
                text: text.to_owned(),
            };
            let item = ModelEvent::Item;
            match line {
                ScriptLine::Says(text) => {
                    events.push_back(item(ItemUpdate::Started(id.clone(), open)));
                    events.push_back(item(ItemUpdate::Text(append(text))));
                    let whole = Box::new(ItemBody::AgentMessage(AgentMessage {
                        text: text.to_owned(),
                        phase: None,
                    }));
                    events.push_back(item(ItemUpdate::Completed(id, whole, None)));
                }
                ScriptLine::Seals(depth) => {
                    let nested = (1..depth).fold(json!([]), |inner, _| json!([inner]));
                    let sealed = Sealed {
                        vendor: "test".to_owned(),
                        value: nested,
                    };
                    events.push_back(item(ItemUpdate::Completed(id, open, Some(sealed))));
                }
                ScriptLine::Begins(text) => {
                    events.push_back(item(ItemUpdate::Started(id.clone(), open)));
                    events.push_back(item(ItemUpdate::Text(append(text))));
                }
                ScriptLine::Calls(tool, arguments) => {
                    let call = ToolCall {
                        id: format!("call-{}", events.len()),
                        tool: tool.to_owned(),
                        arguments: arguments.to_owned(),
                        freeform: false,
                        alone: false,
                    };
                    events.push_back(ModelEvent::Tool(id, call));
                }
                ScriptLine::Breaks => {
                    end = ModelEnd::Broke {
                        error: Failure::new(FailureKind::VendorFailed, "not now"),
                        retry_at: Timestamp(1_060_000),
                    };
                }
                ScriptLine::Hangs => hangs = true,
            }
        }
        if !hangs {
            events.push_back(ModelEvent::Ended(end, Some(Usage::default())));
        }
        Box::new(LineAnswer {
            events,
            dropped: self.dropped.clone(),
        })
    }
}

fn in_words(entry: &ContextEntry) -> String {
    match entry {
        ContextEntry::User(input) => match &input[..] {
            [Input::Text { text, .. }] => format!("user {text}"),
            other => format!("user {other:?}"),
        },
        ContextEntry::Assistant { text, .. } => format!("assistant {text}"),
        ContextEntry::Call(call) => format!("call {}", call.tool),
        ContextEntry::Output { output, .. } => format!("output {}", output.text),
        other => format!("{other:?}"),
    }
}

struct LineAnswer {
    events: VecDeque<ModelEvent>,
    dropped: Arc<Notify>,
}

impl ModelAnswer for LineAnswer {
    fn next(&mut self) -> BoxFuture<'_, ModelEvent> {
        match self.events.pop_front() {
            Some(event) => Box::pin(ready(event)),
            None => Box::pin(pending()),
        }
    }
}

impl Drop for LineAnswer {
    fn drop(&mut self) {
        self.dropped.notify_one();
    }
}
