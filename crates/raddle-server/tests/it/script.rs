//! A model that follows a script, and the live threads that use it.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use raddle_agent::{Liveness, Threads};
use raddle_core::ports::{
    Blobs, BoxFuture, Journal, Model, ModelAnswer, ModelEvent, Pages, Prompt,
};
use raddle_core::{
    AgentMessage, ContextEntry, Failure, FailureKind, Image, Input, ItemBody, ItemId, ItemPart,
    ModelEnd, Price, Settings, SharedEntry, Timestamp, ToolCall, Usage,
};
use raddle_server::AgentDeps;
use raddle_store::MemoryJournal;

/// Live threads in memory, whose model says these messages, one in each call, and then fails. A message
/// that ends in `…` is only begun: the call says no more and does not end. `calls NAME ARGUMENTS`, on a line
/// for each, calls tools, and `heard` says what the model was given for its calls, and which images it saw.
pub fn threads(says: &[&str]) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    threads_of(Arc::new(MemoryJournal::new()), says)
}

/// The same in a journal that others may use after them.
pub fn threads_of(
    journal: Arc<MemoryJournal>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    with(journal.clone(), journal.clone(), journal, says)
}

/// The same in a journal of one's own, which has no pages.
#[allow(dead_code, reason = "the tests of the binary take this file too")]
pub fn threads_in(
    journal: Arc<dyn Journal>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    with_pages(journal, Arc::new(MemoryJournal::new()), says)
}

/// The same with pages of one's own.
pub fn with_pages(
    journal: Arc<dyn Journal>,
    pages: Arc<dyn Pages>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    with(journal, pages, Arc::new(MemoryJournal::new()), says)
}

/// The same as one of several processes that share the journal.
#[allow(dead_code, reason = "the tests of the binary take this file too")]
pub fn threads_at(
    node: &str,
    nodes: Arc<dyn Liveness>,
    journal: Arc<MemoryJournal>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    let node = node.to_owned();
    let (pages, blobs) = (journal.clone(), journal.clone());
    as_node(node, nodes, journal, pages, blobs, says)
}

fn with(
    journal: Arc<dyn Journal>,
    pages: Arc<dyn Pages>,
    blobs: Arc<dyn Blobs>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    let alone = Arc::new(raddle_agent::SoleNode);
    as_node("test".to_owned(), alone, journal, pages, blobs, says)
}

fn as_node(
    node: String,
    nodes: Arc<dyn Liveness>,
    journal: Arc<dyn Journal>,
    pages: Arc<dyn Pages>,
    blobs: Arc<dyn Blobs>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    let model = model(says);
    move |_| {
        let memory = Arc::new(MemoryJournal::new());
        Threads::new(raddle_agent::Options {
            journal,
            pages,
            blobs,
            memory: memory.clone(),
            memory_pages: memory.clone(),
            memory_blobs: memory,
            model,
            tools: Arc::new(raddle_agent::NoTools),
            rules: Arc::new(raddle_agent::FixedRules::default()),
            webhook: Arc::new(raddle_agent::NoWebhook),
            clock: || Timestamp(1_700_000_000_000),
            node,
            liveness: nodes,
            recovery: raddle_core::Recovery::Continue,
        })
    }
}

/// The model alone.
pub fn model(says: &[&str]) -> Arc<dyn Model> {
    let says = says.iter().map(|it| (*it).to_owned()).collect();
    Arc::new(AnswerScript(Mutex::new(says)))
}

struct AnswerScript(Mutex<VecDeque<String>>);

impl Model for AnswerScript {
    fn price<'a>(&'a self, _: &'a Settings) -> BoxFuture<'a, Option<Price>> {
        Box::pin(async { None })
    }

    fn call(&self, prompt: Prompt) -> Box<dyn ModelAnswer> {
        let text = self.0.lock().expect("the script").pop_front();
        let text = text.map(|text| match text.as_str() {
            "heard" => given(&prompt.entries),
            _ => text,
        });
        let said = match text {
            Some(text) if text.starts_with("calls ") => calls(&text),
            Some(text) if text.ends_with('…') => {
                let id = ItemId::mint();
                let open = ItemBody::AgentMessage(AgentMessage::default());
                let text = text.trim_end_matches('…').to_owned();
                let said = [
                    ModelEvent::Started(id.clone(), open),
                    ModelEvent::Text(id, ItemPart::Text, text),
                ];
                return Box::new(QueuedEvents {
                    events: VecDeque::from(said),
                    ends: false,
                });
            }
            Some(text) => {
                let id = ItemId::mint();
                let open = ItemBody::AgentMessage(AgentMessage::default());
                let whole = AgentMessage {
                    text: text.clone(),
                    phase: None,
                };
                VecDeque::from([
                    ModelEvent::Started(id.clone(), open),
                    ModelEvent::Text(id.clone(), ItemPart::Text, text),
                    ModelEvent::Completed(id, ItemBody::AgentMessage(whole), None),
                    ModelEvent::Ended(ModelEnd::Done {}, Some(Usage::default())),
                ])
            }
            None => {
                let error = Failure::new(FailureKind::Other, "the script has no more lines");
                VecDeque::from([ModelEvent::Ended(ModelEnd::Failed { error }, None)])
            }
        };
        Box::new(QueuedEvents {
            events: said,
            ends: true,
        })
    }
}

fn calls(text: &str) -> VecDeque<ModelEvent> {
    let calls = text.lines().enumerate().map(|(at, line)| {
        let (_, call) = line.split_once(' ').expect("a call");
        let (tool, arguments) = call.split_once(' ').expect("arguments");
        let call = ToolCall {
            id: format!("call-{at}"),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            freeform: false,
            alone: false,
        };
        ModelEvent::Tool(ItemId::mint(), call)
    });
    calls.collect()
}

fn given(entries: &[SharedEntry]) -> String {
    let seen = |image: &Image| match image {
        Image::Url { url } => format!("[{url}]"),
        other => format!("[{other:?}]"),
    };
    let mut given = Vec::new();
    for entry in entries {
        match &**entry {
            ContextEntry::Output { output, .. } => {
                given.extend(Some(output.text.clone()).filter(|text| !text.is_empty()));
                given.extend(output.images.iter().map(seen));
            }
            ContextEntry::User(input) => given.extend(input.iter().filter_map(|part| match part {
                Input::Image { image, .. } => Some(seen(image)),
                _ => None,
            })),
            _ => {}
        }
    }
    given.join(" · ")
}

struct QueuedEvents {
    events: VecDeque<ModelEvent>,
    ends: bool,
}

impl ModelAnswer for QueuedEvents {
    fn next(&mut self) -> BoxFuture<'_, ModelEvent> {
        match self.events.pop_front() {
            Some(said) => Box::pin(ready(said)),
            None if self.ends => Box::pin(ready(ModelEvent::Ended(ModelEnd::Done {}, None))),
            None => Box::pin(pending()),
        }
    }
}
