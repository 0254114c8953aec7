//! A model that follows a script.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use raddle_core::ports::{Answer, Model, Prompt, Said, Waiting};
use raddle_core::{
    AgentMessage, Call, Entry, Failure, FailureKind, Input, ItemBody, ItemId, ModelEnd, Part,
    Piece, Price, Sealed, Settings, Timestamp, Usage,
};
use serde_json::json;
use tokio::sync::Notify;

/// One line of a script.
#[derive(Clone, Copy)]
pub enum Line {
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
pub struct Script {
    calls: Mutex<VecDeque<Vec<Line>>>,
    prompts: Mutex<Vec<Vec<Piece>>>,
    dropped: Arc<Notify>,
}

impl Script {
    pub fn new(calls: &[&[Line]]) -> Self {
        Self {
            calls: Mutex::new(calls.iter().map(|lines| lines.to_vec()).collect()),
            prompts: Mutex::default(),
            dropped: Arc::default(),
        }
    }

    /// What was said so far, in words, for each call.
    pub fn prompts(&self) -> Vec<String> {
        let said = |entries: &Vec<Piece>| {
            let said = entries
                .iter()
                .filter(|entry| !matches!(***entry, Entry::Note(_)));
            said.map(|entry| in_words(entry))
                .collect::<Vec<_>>()
                .join(" · ")
        };
        self.whole().iter().map(said).collect()
    }

    /// What was read beside that.
    pub fn notes(&self) -> Vec<Vec<String>> {
        let note = |entry: &Piece| match &**entry {
            Entry::Note(text) => Some(text.clone()),
            _ => None,
        };
        let notes = |entries: &Vec<Piece>| entries.iter().filter_map(note).collect();
        self.whole().iter().map(notes).collect()
    }

    /// All that was read, for each call.
    pub fn whole(&self) -> Vec<Vec<Piece>> {
        self.prompts.lock().expect("prompts").clone()
    }

    /// Resolves when an answer was dropped.
    pub async fn dropped(&self) {
        self.dropped.notified().await;
    }
}

impl Model for Script {
    fn price<'a>(&'a self, _: &'a Settings) -> Waiting<'a, Option<Price>> {
        Box::pin(async { None })
    }

    fn call(&self, prompt: Prompt) -> Box<dyn Answer> {
        self.prompts.lock().expect("prompts").push(prompt.entries);
        let lines = self.calls.lock().expect("calls").pop_front();
        let mut said = VecDeque::new();
        let mut hangs = false;
        let mut end = ModelEnd::Done {};
        for line in lines.unwrap_or_default() {
            let id = ItemId::mint();
            let open = ItemBody::AgentMessage(AgentMessage::default());
            match line {
                Line::Says(text) => {
                    said.push_back(Said::Started(id.clone(), open));
                    said.push_back(Said::Text(id.clone(), Part::Text, text.to_owned()));
                    let whole = AgentMessage {
                        text: text.to_owned(),
                        phase: None,
                    };
                    said.push_back(Said::Completed(id, ItemBody::AgentMessage(whole), None));
                }
                Line::Seals(depth) => {
                    let nested = (1..depth).fold(json!([]), |inner, _| json!([inner]));
                    let sealed = Sealed {
                        vendor: "test".to_owned(),
                        value: nested,
                    };
                    let whole = ItemBody::AgentMessage(AgentMessage::default());
                    said.push_back(Said::Completed(id, whole, Some(sealed)));
                }
                Line::Begins(text) => {
                    said.push_back(Said::Started(id.clone(), open));
                    said.push_back(Said::Text(id, Part::Text, text.to_owned()));
                }
                Line::Calls(tool, arguments) => {
                    let call = Call {
                        id: format!("call-{}", said.len()),
                        tool: tool.to_owned(),
                        arguments: arguments.to_owned(),
                        freeform: false,
                        alone: false,
                    };
                    said.push_back(Said::Tool(id, call));
                }
                Line::Breaks => {
                    end = ModelEnd::Broke {
                        error: Failure::new(FailureKind::VendorFailed, "not now"),
                        retry_at: Timestamp(1_060_000),
                    };
                }
                Line::Hangs => hangs = true,
            }
        }
        if !hangs {
            said.push_back(Said::Ended(end, Some(Usage::default())));
        }
        Box::new(Lines {
            said,
            dropped: self.dropped.clone(),
        })
    }
}

fn in_words(entry: &Entry) -> String {
    match entry {
        Entry::User(input) => match &input[..] {
            [Input::Text { text, .. }] => format!("user {text}"),
            other => format!("user {other:?}"),
        },
        Entry::Assistant { text, .. } => format!("assistant {text}"),
        Entry::Call(call) => format!("call {}", call.tool),
        Entry::Output { output, .. } => format!("output {}", output.text),
        other => format!("{other:?}"),
    }
}

struct Lines {
    said: VecDeque<Said>,
    dropped: Arc<Notify>,
}

impl Answer for Lines {
    fn next(&mut self) -> Waiting<'_, Said> {
        match self.said.pop_front() {
            Some(said) => Box::pin(ready(said)),
            None => Box::pin(pending()),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.dropped.notify_one();
    }
}
