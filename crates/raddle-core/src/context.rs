//! The model's context: a second fold over the same records.
//!
//! It is well-formed wherever a turn was cut off. Every call has exactly one output, which comes
//! before any other entry. Input waits until the answer that it interrupts is over. A message that
//! was cut off is never last: the user's next input follows it, or a note on how it ended.

mod shared_entry;

pub use shared_entry::SharedEntry;

use std::collections::BTreeMap;

use crate::{
    AgentMessage, Briefed, CommandRun, CommandSource, Event, HookPrompt, InjectedItem, Input, Item,
    ItemBody, ItemStatus, ModelEnd, Output, Record, RecordBody, Review, Sealed, ToolCall,
    ToolOutput, Topic,
};

/// Note for the model once the workspace has no instructions any more.
const NO_INSTRUCTIONS: &str =
    "The instructions of this workspace that were given before no longer apply.";

/// Note for the model once it is offered no skills any more.
const NO_SKILLS: &str = "The skills that were listed before are no longer available.";

/// Note after a message that was cut off, before the model is called again.
const CUT_OFF: &str = "Your last message was cut off by a fault. The user has seen it as it stands: go on from \
                       there, and do not repeat it.";

/// Output that stands in for a call without output.
const NO_OUTPUT: &str = "No outcome of this call is known.";

/// One entry of the model's context.
#[derive(Clone, Debug, PartialEq)]
pub enum ContextEntry {
    /// Summary that replaces everything before it.
    Summary(String),
    /// Input of the user.
    User(Vec<Input>),
    /// Instructions of the agent's developer.
    Developer(String),
    /// A message of the agent.
    Assistant {
        /// Text of the message.
        text: String,
        /// Whether the message was cut off.
        partial: bool,
        /// The vendor's own form of the message.
        sealed: Option<Sealed>,
    },
    /// The model's reasoning, readable only by its vendor.
    Reasoning(Sealed),
    /// A tool call of the model.
    Call(ToolCall),
    /// Output of a tool call.
    Output {
        /// Id of the call.
        call: String,
        /// Output for the model.
        output: Output,
    },
    /// Text for the model that is neither the user's nor its own.
    Note(String),
}

/// The model's context as it grows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    entries: Vec<SharedEntry>,
    /// Ids of calls without an output, in call order.
    unanswered: Vec<String>,
    /// Index in `entries` of the first of these calls.
    calls_from: usize,
    /// Input that arrived in the middle of an answer.
    waiting: Vec<SharedEntry>,
    answering: bool,
    /// Index in `entries` at which the newest answer begins.
    answer_from: usize,
    /// Newest note on the environment, per topic.
    briefs: BTreeMap<Topic, String>,
}

impl Context {
    /// Creates the context before the first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Builds the context of a thread from the records of its lineage, in order.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut context = Self::new();
        for record in records {
            context.apply(record);
        }
        context
    }

    /// Adds a stored record.
    pub fn apply(&mut self, record: &Record) {
        let RecordBody::Event(event) = &record.body else {
            return;
        };
        match &**event {
            Event::InputAccepted(it) => self.add_input(&it.item),
            Event::ModelCalled(_) => {
                self.note_cut_off();
                self.settle();
                self.answering = true;
                self.answer_from = self.entries.len();
            }
            Event::ModelEnded(it) => {
                self.answering = false;
                if !matches!(it.end, ModelEnd::Done {}) {
                    self.forget_thinking();
                }
                // Items of such an answer complete only after this, and come before input that
                // arrived during the answer.
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
            | Event::ModelUsed(_)
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

    /// Returns the model's context as of now, always well-formed.
    pub fn entries(&self) -> Vec<SharedEntry> {
        let mut whole = self.clone();
        if !crate::bugs::planted(crate::bugs::Bug::PoisonedContext) {
            whole.close_calls();
        }
        whole.answering = false;
        whole.settle();
        let mut entries = whole.entries;
        // The model would continue a cut-off message, or reasoning that led to nothing, as its next
        // answer.
        while matches!(
            entries.last().map(|it| &**it),
            Some(ContextEntry::Assistant { partial: true, .. } | ContextEntry::Reasoning(_))
        ) {
            entries.pop();
        }
        entries
    }

    /// Adds a note after a cut-off message before the model continues. The user has seen the
    /// message, so the model gets it too, and the note states how it ended.
    fn note_cut_off(&mut self) {
        let last = self.entries.last().map(|it| &**it);
        if let Some(ContextEntry::Assistant { partial: true, .. }) = last {
            let note = ContextEntry::Note(CUT_OFF.to_owned());
            self.entries.push(note.into());
        }
    }

    /// Drops reasoning that led to nothing: in front of the next answer it would seem to belong
    /// there, and its vendor rejects that. Reasoning that led to a call stays with the call.
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
            (Topic::WithheldSkills, _) => return,
            // The earlier content stays in the history until that is summarised.
            (Topic::SkillTexts, "") => {
                self.briefs.remove(&it.topic);
                return;
            }
            (Topic::Instructions, "") => NO_INSTRUCTIONS,
            (Topic::Skills, "") => NO_SKILLS,
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

    fn add_input(&mut self, item: &Item) {
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
                self.add_model_entry(ContextEntry::Assistant {
                    text: text.clone(),
                    partial,
                    sealed: item.sealed.clone(),
                });
            }
            ItemBody::Reasoning(_) => {
                // Reasoning that was cut off is not sealed.
                if let Some(sealed) = item.sealed.clone() {
                    self.add_model_entry(ContextEntry::Reasoning(sealed));
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
                let note = item.output.as_ref().map(|output| output.text.clone());
                let unknown = || format!("The user ran {command}, and how it ended is not known.");
                self.wait(ContextEntry::Note(note.unwrap_or_else(unknown)));
                self.settle();
            }
            // The rest is only for the user.
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

    /// Adds a message of the model, before any open calls, so that nothing stands between a call
    /// and its output. A message may complete only after calls that began later.
    fn add_model_entry(&mut self, entry: ContextEntry) {
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
        // Two calls may have one id; each is answered.
        let open = self.unanswered.iter().position(|open| open == call);
        // A call that a summary replaced has no entry to answer.
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

    /// Adds the waiting entries once no answer and no call is open.
    fn settle(&mut self) {
        if !self.answering && self.unanswered.is_empty() {
            self.entries.append(&mut self.waiting);
        }
    }
}

/// Returns the entries for injected history, in the order in which they would have arisen here.
fn injected(items: &[InjectedItem]) -> Vec<SharedEntry> {
    let mut context = Context::new();
    for item in items {
        match item {
            InjectedItem::User { input } => context.wait(ContextEntry::User(input.clone())),
            InjectedItem::Developer { text } => context.wait(ContextEntry::Developer(text.clone())),
            InjectedItem::Note { text } => context.wait(ContextEntry::Note(text.clone())),
            InjectedItem::Assistant { text } => context.add_model_entry(ContextEntry::Assistant {
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
