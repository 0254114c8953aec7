//! A model that follows a script.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use raddle_core::ports::{BoxFuture, Model, ModelAnswer, ModelEvent, Prompt};
use raddle_core::{
    AgentMessage, ContextEntry, Failure, FailureKind, Input, ItemBody, ItemId, ItemPart, ModelEnd,
    Price, Sealed, Settings, SharedEntry, Timestamp, ToolCall, Usage,
};
use serde_json::json;
use tokio::sync::Notify;

/// One line of a script.
#[derive(Clone, Copy)]
pub enum ScriptLine {
    /// A whole message.
    Says(&'static str),
    /// A whole message with something sealed that is so deep.
    Seals(usize),
    /// A message that is not ended.
    Begins(&'static str),
    /// A call of a tool with these arguments.
    Calls(&'static str, &'static str),
    /// An end that is tried again, in a minute.
    Breaks,
    /// Nothing more, ever.
    Hangs,
}

/// One list of lines for each call.
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

    /// What was said so far, in words, for each call.
    pub fn prompts(&self) -> Vec<String> {
        let said = |entries: &Vec<SharedEntry>| {
            let said = entries
                .iter()
                .filter(|entry| !matches!(***entry, ContextEntry::Note(_)));
            said.map(|entry| in_words(entry))
                .collect::<Vec<_>>()
                .join(" · ")
        };
        self.whole().iter().map(said).collect()
    }

    /// What was read beside that.
    pub fn notes(&self) -> Vec<Vec<String>> {
        let note = |entry: &SharedEntry| match &**entry {
            ContextEntry::Note(text) => Some(text.clone()),
            _ => None,
        };
        let notes = |entries: &Vec<SharedEntry>| entries.iter().filter_map(note).collect();
        self.whole().iter().map(notes).collect()
    }

    /// All that was read, for each call.
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
        let mut said = VecDeque::new();
        let mut hangs = false;
        let mut end = ModelEnd::Done {};
        for line in lines.unwrap_or_default() {
            let id = ItemId::mint();
            let open = ItemBody::AgentMessage(AgentMessage::default());
            match line {
                ScriptLine::Says(text) => {
                    said.push_back(ModelEvent::Started(id.clone(), open));
                    said.push_back(ModelEvent::Text(
                        id.clone(),
                        ItemPart::Text,
                        text.to_owned(),
                    ));
                    let whole = AgentMessage {
                        text: text.to_owned(),
                        phase: None,
                    };
                    said.push_back(ModelEvent::Completed(
                        id,
                        ItemBody::AgentMessage(whole),
                        None,
                    ));
                }
                ScriptLine::Seals(depth) => {
                    let nested = (1..depth).fold(json!([]), |inner, _| json!([inner]));
                    let sealed = Sealed {
                        vendor: "test".to_owned(),
                        value: nested,
                    };
                    let whole = ItemBody::AgentMessage(AgentMessage::default());
                    said.push_back(ModelEvent::Completed(id, whole, Some(sealed)));
                }
                ScriptLine::Begins(text) => {
                    said.push_back(ModelEvent::Started(id.clone(), open));
                    said.push_back(ModelEvent::Text(id, ItemPart::Text, text.to_owned()));
                }
                ScriptLine::Calls(tool, arguments) => {
                    let call = ToolCall {
                        id: format!("call-{}", said.len()),
                        tool: tool.to_owned(),
                        arguments: arguments.to_owned(),
                        freeform: false,
                        alone: false,
                    };
                    said.push_back(ModelEvent::Tool(id, call));
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
            said.push_back(ModelEvent::Ended(end, Some(Usage::default())));
        }
        Box::new(LineAnswer {
            said,
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
    said: VecDeque<ModelEvent>,
    dropped: Arc<Notify>,
}

impl ModelAnswer for LineAnswer {
    fn next(&mut self) -> BoxFuture<'_, ModelEvent> {
        match self.said.pop_front() {
            Some(said) => Box::pin(ready(said)),
            None => Box::pin(pending()),
        }
    }
}

impl Drop for LineAnswer {
    fn drop(&mut self) {
        self.dropped.notify_one();
    }
}
