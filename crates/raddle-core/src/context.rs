//! What the model reads: a second fold over the same records.
//!
//! It is well-formed whatever was cut where: every call has exactly one output, which comes before
//! anything else is said; input waits until the answer it interrupts is over; a message that was cut
//! off never stands last: it is followed by what the user said then, or by a word on how it ended.

mod shared_entry;

pub use shared_entry::SharedEntry;

use std::collections::BTreeMap;

use crate::{
    AgentMessage, Briefed, CommandRun, CommandSource, Event, HookPrompt, InjectedItem, Input, Item,
    ItemBody, ItemStatus, ModelEnd, Output, Record, RecordBody, Review, Sealed, ToolCall,
    ToolOutput, Topic,
};

/// What is said when the workspace no longer asks for anything.
const NO_INSTRUCTIONS: &str =
    "The instructions of this workspace that were given before no longer apply.";

/// What is said of a message that was cut off, before the model is asked again.
const CUT_OFF: &str = "Your last message was cut off by a fault. The user has seen it as it stands: go on from \
                       there, and do not repeat it.";

/// What is said of a call that has no output of its own.
const NO_OUTPUT: &str = "No outcome of this call is known.";

/// One thing the model reads.
#[derive(Clone, Debug, PartialEq)]
pub enum ContextEntry {
    /// In place of everything before it.
    Summary(String),
    /// From the user.
    User(Vec<Input>),
    /// From whoever made the agent.
    Developer(String),
    /// From the agent.
    Assistant {
        /// The text.
        text: String,
        /// Whether it was cut off.
        partial: bool,
        /// The vendor's own form of it.
        sealed: Option<Sealed>,
    },
    /// The model's thinking, of use only to its vendor.
    Reasoning(Sealed),
    /// The model asked for a tool.
    Call(ToolCall),
    /// What came of a call.
    Output {
        /// The call.
        call: String,
        /// What came of it.
        output: Output,
    },
    /// Text for the model that no one said.
    Note(String),
}

/// The model's context as it grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    entries: Vec<SharedEntry>,
    /// Calls without an output, in the order they were made.
    unanswered: Vec<String>,
    /// Where these begin.
    calls_from: usize,
    /// Input that came in the middle of an answer.
    waiting: Vec<SharedEntry>,
    answering: bool,
    /// Where the newest answer begins.
    answer_from: usize,
    /// What was last told about the surroundings.
    briefs: BTreeMap<Topic, String>,
}

impl Context {
    /// Before the first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// The context of some records, which are those of a thread's lineage in their order.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut context = Self::new();
        for record in records {
            context.apply(record);
        }
        context
    }

    /// It happened.
    pub fn apply(&mut self, record: &Record) {
        let RecordBody::Event(event) = &record.body else {
            return;
        };
        match &**event {
            Event::InputAccepted(it) => self.hear(&it.item),
            Event::ModelCalled(_) => {
                self.go_on();
                self.settle();
                self.answering = true;
                self.answer_from = self.entries.len();
            }
            Event::ModelEnded(it) => {
                self.answering = false;
                if !matches!(it.end, ModelEnd::Done {}) {
                    self.forget_thinking();
                }
                // What such an answer had said is completed only after this, and stands before what came in
                // meanwhile.
                if !matches!(it.end, ModelEnd::OwnerLost {} | ModelEnd::Cancelled {}) {
                    self.settle();
                }
            }
            Event::ItemStarted(it) => {
                if let Some(call) = &it.item.call {
                    self.call(call);
                }
            }
            Event::ItemCompleted(it) => self.complete(&it.item),
            Event::Compacted(it) => {
                let briefs = self.briefs.values().cloned().map(ContextEntry::Note);
                let summary = ContextEntry::Summary(it.summary.clone());
                self.entries = briefs.chain([summary]).map(SharedEntry::from).collect();
                self.unanswered.clear();
            }
            Event::Briefed(it) => self.brief(it),
            Event::ItemsInjected(it) => {
                self.waiting.extend(injected(&it.items));
                self.settle();
            }
            Event::TurnEnded(_) | Event::Forked(_) | Event::Reverted(_) => {
                self.answering = false;
                self.close_calls();
                self.settle();
            }
            Event::ThreadStarted(_)
            | Event::Owned(_)
            | Event::Reserved(_)
            | Event::Released {}
            | Event::SettingsChanged(_)
            | Event::Renamed(_)
            | Event::MetadataChanged(_)
            | Event::GoalSet(_)
            | Event::GoalCleared { .. }
            | Event::InputQueued(_)
            | Event::InputUnqueued(_)
            | Event::QueueReordered(_)
            | Event::Archived { .. }
            | Event::Unarchived { .. }
            | Event::Deleted { .. }
            | Event::TurnStarted(_)
            | Event::ItemSaved(_)
            | Event::ToolStarted(_)
            | Event::RequestOpened(_)
            | Event::RequestResolved(_)
            | Event::PlanUpdated(_)
            | Event::DiffUpdated(_)
            | Event::Warned(_)
            | Event::InterruptAccepted(_)
            | Event::Remembered(_) => {}
        }
    }

    /// What the model reads now. Always well-formed.
    pub fn entries(&self) -> Vec<SharedEntry> {
        let mut whole = self.clone();
        if !crate::bugs::planted(crate::bugs::Bug::PoisonedContext) {
            whole.close_calls();
        }
        whole.answering = false;
        whole.settle();
        let mut entries = whole.entries;
        // A message that was cut off, and thinking that led to nothing, would be taken for the
        // beginning of the next answer.
        while matches!(
            entries.last().map(|it| &**it),
            Some(ContextEntry::Assistant { partial: true, .. } | ContextEntry::Reasoning(_))
        ) {
            entries.pop();
        }
        entries
    }

    /// A message that was cut off and is gone on with: the user has seen it, so the model reads it too, and
    /// is told how it ended.
    fn go_on(&mut self) {
        let last = self.entries.last().map(|it| &**it);
        if let Some(ContextEntry::Assistant { partial: true, .. }) = last {
            let note = ContextEntry::Note(CUT_OFF.to_owned());
            self.entries.push(note.into());
        }
    }

    /// Thinking that led to nothing stands before the next answer as if it led there, and its vendor
    /// takes offence. Thinking that led to a call stays with it.
    fn forget_thinking(&mut self) {
        let from = self.answer_from.min(self.entries.len());
        let calls = |entry: &SharedEntry| matches!(**entry, ContextEntry::Call(_));
        if !self.entries[from..].iter().any(calls) {
            let answer = self.entries.split_off(from).into_iter();
            let rest = answer.filter(|entry| !matches!(**entry, ContextEntry::Reasoning(_)));
            self.entries.extend(rest);
        }
    }

    fn brief(&mut self, it: &Briefed) {
        let note = match (it.topic, it.text.as_str()) {
            (Topic::Instructions, "") => NO_INSTRUCTIONS,
            (_, text) => text,
        };
        self.wait(ContextEntry::Note(note.to_owned()));
        self.settle();
        if it.text.is_empty() {
            self.briefs.remove(&it.topic);
        } else {
            self.briefs.insert(it.topic, it.text.clone());
        }
    }

    fn hear(&mut self, item: &Item) {
        if let ItemBody::UserMessage(message) = &item.body {
            self.wait(ContextEntry::User(message.input.clone()));
            self.settle();
        }
    }

    fn complete(&mut self, item: &Item) {
        if let Some(call) = &item.call {
            let output = item.output.clone();
            let output = output.unwrap_or_else(|| Output::failure(NO_OUTPUT));
            self.answer(&call.id, output);
            return self.settle();
        }
        let partial = item.status == ItemStatus::Partial;
        match &item.body {
            ItemBody::AgentMessage(AgentMessage { text, .. }) if !text.is_empty() => {
                self.say(ContextEntry::Assistant {
                    text: text.clone(),
                    partial,
                    sealed: item.sealed.clone(),
                });
            }
            ItemBody::Reasoning(_) => {
                // What was cut off is not sealed.
                if let Some(sealed) = item.sealed.clone() {
                    self.say(ContextEntry::Reasoning(sealed));
                }
            }
            ItemBody::HookPrompt(HookPrompt { pieces }) => {
                for piece in pieces {
                    self.wait(ContextEntry::Note(piece.text.clone()));
                }
                self.settle();
            }
            ItemBody::ReviewEntered(Review {
                prompt: Some(prompt),
                ..
            }) => {
                self.wait(ContextEntry::User(vec![Input::text(prompt)]));
                self.settle();
            }
            ItemBody::ToolOutput(ToolOutput { name, output, .. }) => {
                self.wait(ContextEntry::Note(format!("Output of {name}: {output}")));
                self.settle();
            }
            ItemBody::Command(CommandRun {
                source: CommandSource::User,
                command,
                ..
            }) => {
                let said = item.output.as_ref().map(|output| output.text.clone());
                let unknown = || format!("The user ran {command}, and how it ended is not known.");
                self.wait(ContextEntry::Note(said.unwrap_or_else(unknown)));
                self.settle();
            }
            // The rest is for people.
            ItemBody::AgentMessage(_)
            | ItemBody::UserMessage(_)
            | ItemBody::Plan(_)
            | ItemBody::Command(_)
            | ItemBody::Patch(_)
            | ItemBody::Mcp(_)
            | ItemBody::ClientTool(_)
            | ItemBody::Agents(_)
            | ItemBody::AgentNote(_)
            | ItemBody::WebSearch(_)
            | ItemBody::ImageView(_)
            | ItemBody::Sleep(_)
            | ItemBody::ImageMade(_)
            | ItemBody::ReviewEntered(_)
            | ItemBody::ReviewLeft(_)
            | ItemBody::Compaction {}
            | ItemBody::Tool(_) => {}
        }
    }

    /// What was said while calls were being made is heard before them, so that nothing stands between a
    /// call and its output: a message may be whole only after the calls that came behind it.
    fn say(&mut self, entry: ContextEntry) {
        if self.unanswered.is_empty() {
            return self.entries.push(entry.into());
        }
        self.entries.insert(self.calls_from, entry.into());
        self.calls_from += 1;
    }

    fn call(&mut self, call: &ToolCall) {
        if self.unanswered.is_empty() {
            self.calls_from = self.entries.len();
        }
        self.entries.push(ContextEntry::Call(call.clone()).into());
        self.unanswered.push(call.id.clone());
    }

    fn answer(&mut self, call: &str, output: Output) {
        // Two calls may have one name; each is answered.
        let open = self.unanswered.iter().position(|open| open == call);
        // A call that was condensed away has nowhere to be answered.
        if let Some(open) = open {
            self.unanswered.remove(open);
            let call = call.to_owned();
            self.entries
                .push(ContextEntry::Output { call, output }.into());
        }
    }

    fn close_calls(&mut self) {
        for call in std::mem::take(&mut self.unanswered) {
            let output = Output::failure(NO_OUTPUT);
            self.entries
                .push(ContextEntry::Output { call, output }.into());
        }
    }

    fn wait(&mut self, entry: ContextEntry) {
        self.waiting.push(entry.into());
    }

    /// What waited is heard once no answer and no call is in the way.
    fn settle(&mut self) {
        if !self.answering && self.unanswered.is_empty() {
            self.entries.append(&mut self.waiting);
        }
    }
}

/// What the model reads of history that did not happen here: the same order as if it had.
fn injected(items: &[InjectedItem]) -> Vec<SharedEntry> {
    let mut context = Context::new();
    for item in items {
        match item {
            InjectedItem::User { input } => context.wait(ContextEntry::User(input.clone())),
            InjectedItem::Developer { text } => context.wait(ContextEntry::Developer(text.clone())),
            InjectedItem::Note { text } => context.wait(ContextEntry::Note(text.clone())),
            InjectedItem::Assistant { text } => context.say(ContextEntry::Assistant {
                text: text.clone(),
                partial: false,
                sealed: None,
            }),
            InjectedItem::Call(call) => context.call(call),
            InjectedItem::Output { call, output } => context.answer(call, output.clone()),
        }
        context.settle();
    }
    context.close_calls();
    context.settle();
    context.entries
}
