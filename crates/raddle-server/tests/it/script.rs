//! A model that follows a script, and the live threads that use it.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use raddle_agent::{Liveness, Threads};
use raddle_core::ports::{
    Blobs, BoxFuture, Journal, Model, ModelAnswer, ModelEvent, Pages, Prompt,
};
use raddle_core::{
    AgentMessage, AppendText, ContextEntry, Failure, FailureKind, Image, Input, ItemBody, ItemId,
    ItemPart, ItemUpdate, ModelEnd, Price, Settings, SharedEntry, Timestamp, ToolCall, Usage,
};
use raddle_server::AgentDeps;
use raddle_store::MemoryJournal;

/// Returns live threads in memory. Their model sends these messages, one for each call, and then
/// fails. A message that ends in `…` is only begun: the call sends no more and does not end.
///
/// A message of lines `calls NAME ARGUMENTS` calls these tools. The message `heard` repeats the
/// tool results and images that the model received, and `notes` its notes.
pub fn threads(says: &[&str]) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    threads_of(Arc::new(MemoryJournal::new()), says)
}

/// Like [`threads`], in a journal that other processes may use later.
pub fn threads_of(
    journal: Arc<MemoryJournal>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    with(journal.clone(), journal.clone(), journal, says)
}

/// Like [`threads`], in the given journal, without pages.
#[allow(dead_code, reason = "the tests of the binary take this file too")]
pub fn threads_in(
    journal: Arc<dyn Journal>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    with_pages(journal, Arc::new(MemoryJournal::new()), says)
}

/// Like [`threads`], with the given pages.
pub fn with_pages(
    journal: Arc<dyn Journal>,
    pages: Arc<dyn Pages>,
    says: &[&str],
) -> impl FnOnce(AgentDeps) -> Threads + use<> {
    with(journal, pages, Arc::new(MemoryJournal::new()), says)
}

/// Like [`threads`], as one of several processes that share the journal.
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
    let liveness = Arc::new(raddle_agent::SoleNode);
    as_node("test".to_owned(), liveness, journal, pages, blobs, says)
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
    move |deps| {
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
            hooks: Arc::new(raddle_core::ports::NoHooks),
            skills: deps.skills,
            plugins: Arc::new(raddle_core::ports::NoPlugins),
            clock: || Timestamp(1_700_000_000_000),
            node,
            liveness: nodes,
            recovery: raddle_core::Recovery::Continue,
        })
    }
}

/// Returns the model alone.
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
            "heard" => received(&prompt.entries),
            "notes" => notes(&prompt.entries),
            _ => text,
        });
        let events = match text {
            Some(text) if text.starts_with("calls ") => calls(&text),
            Some(text) if text.ends_with('…') => {
                return Box::new(QueuedEvents {
                    events: begun(&ItemId::mint(), text.trim_end_matches('…')),
                    ends: false,
                });
            }
            Some(text) => {
                let id = ItemId::mint();
                let mut events = begun(&id, &text);
                let message = ItemBody::AgentMessage(AgentMessage { text, phase: None });
                let completed = ItemUpdate::Completed(id, Box::new(message), None);
                events.push_back(ModelEvent::Item(completed));
                let usage = Some(Usage::default());
                events.push_back(ModelEvent::Ended(ModelEnd::Done {}, usage));
                events
            }
            None => {
                let error = Failure::new(FailureKind::Other, "the script has no more lines");
                VecDeque::from([ModelEvent::Ended(ModelEnd::Failed { error }, None)])
            }
        };
        Box::new(QueuedEvents { events, ends: true })
    }
}

/// The beginning of a message, with its text.
fn begun(id: &ItemId, text: &str) -> VecDeque<ModelEvent> {
    let open = ItemBody::AgentMessage(AgentMessage::default());
    let text = AppendText {
        item: id.clone(),
        part: ItemPart::Text,
        text: text.to_owned(),
    };
    let updates = [
        ItemUpdate::Started(id.clone(), Box::new(open)),
        ItemUpdate::Text(text),
    ];
    updates.map(ModelEvent::Item).into()
}

fn calls(text: &str) -> VecDeque<ModelEvent> {
    let calls = text.lines().enumerate().map(|(index, line)| {
        let (_, call) = line.split_once(' ').expect("a call");
        let (tool, arguments) = call.split_once(' ').expect("arguments");
        let call = ToolCall {
            id: format!("call-{index}"),
            tool: tool.to_owned(),
            arguments: arguments.to_owned(),
            freeform: false,
            alone: false,
        };
        ModelEvent::Tool(ItemId::mint(), call)
    });
    calls.collect()
}

/// The notes for the model, one after the other.
fn notes(entries: &[SharedEntry]) -> String {
    let notes = entries.iter().filter_map(|entry| match &**entry {
        ContextEntry::Note(text) => Some(text.as_str()),
        _ => None,
    });
    notes.collect::<Vec<_>>().join("\n")
}

fn received(entries: &[SharedEntry]) -> String {
    let image_text = |image: &Image| match image {
        Image::Url { url } => format!("[{url}]"),
        other => format!("[{other:?}]"),
    };
    let mut received_texts = Vec::new();
    for entry in entries {
        match &**entry {
            ContextEntry::Output { output, .. } => {
                received_texts.extend(Some(output.text.clone()).filter(|text| !text.is_empty()));
                received_texts.extend(output.images.iter().map(image_text));
            }
            ContextEntry::User(input) => {
                received_texts.extend(input.iter().filter_map(|part| match part {
                    Input::Image { image, .. } => Some(image_text(image)),
                    _ => None,
                }))
            }
            _ => {}
        }
    }
    received_texts.join(" · ")
}

struct QueuedEvents {
    events: VecDeque<ModelEvent>,
    ends: bool,
}

impl ModelAnswer for QueuedEvents {
    fn next(&mut self) -> BoxFuture<'_, ModelEvent> {
        match self.events.pop_front() {
            Some(event) => Box::pin(ready(event)),
            None if self.ends => Box::pin(ready(ModelEvent::Ended(ModelEnd::Done {}, None))),
            None => Box::pin(pending()),
        }
    }
}
