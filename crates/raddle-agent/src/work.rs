//! Work outside: calling the model and reporting what it says.

use std::collections::BTreeSet;
use std::sync::Arc;

use raddle_core::ports::{Blobs, Journal, Model, ModelEvent, Prompt};
use raddle_core::{
    AppendText, CallTool, Command, CompleteItem, ContextEntry, EndModel, Failure, FailureKind,
    Grant, ItemId, ItemPart, Measure, ModelEnd, Purpose, Scope, Sealed, Seq, Span, StartItem,
    Timestamp, ToolCall, Usage,
};
use tokio::sync::mpsc;

use crate::context::{self, History};
use crate::estimate::UsageMeter;
use crate::images::{SHOWN_BYTES_MAX, look_at};
use crate::instructions::CONDENSE;
use crate::tool_gate::{Judgement, ToolGate};
use crate::tools::OfferedTools;

/// How many calls of one answer are carried out. The model is told of the others that they were not.
pub(crate) const CALLS_MAX: usize = 128;

/// What a call of the model needs.
pub(crate) struct ModelWork {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) prompt: Prompt,
    pub(crate) lineage: Vec<Span>,
    pub(crate) head: Seq,
    pub(crate) history: Arc<History>,
    /// How often in a row the history did not fit the model.
    pub(crate) overflows: u32,
    pub(crate) tools: OfferedTools,
    pub(crate) tool_gate: Arc<ToolGate>,
    /// The acts that have a yes for the session.
    pub(crate) granted: BTreeSet<String>,
    /// The rights beyond the fence that were given.
    pub(crate) rights: Grant,
    /// What was used of what may have a budget.
    pub(crate) used: Vec<(Scope, Measure, u64)>,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) call: u32,
    pub(crate) meter: UsageMeter,
    pub(crate) reports: mpsc::Sender<Command>,
}

impl ModelWork {
    /// Asks the model and reports everything it says. Ends early when nobody takes the reports.
    pub(crate) async fn run(mut self) {
        let thread = self.prompt.thread;
        let (lineage, head) = (&self.lineage, self.head);
        let built = context::build(&*self.journal, thread, lineage, head, &self.history);
        match built.await {
            Ok(entries) => {
                self.prompt.entries = entries;
                // Who condenses works from words: what was too much for a call must not be too much for that.
                let images = match self.prompt.purpose {
                    Purpose::Answer => SHOWN_BYTES_MAX,
                    Purpose::Compact => 0,
                };
                look_at(&*self.blobs, &mut self.prompt.entries, images).await;
                if self.prompt.purpose == Purpose::Compact {
                    // What did not fit to be answered may just fit to be condensed; after that, less is read.
                    let halvings = self.overflows.saturating_sub(1);
                    context::shorten(&mut self.prompt.entries, halvings);
                    let condense = ContextEntry::Note(CONDENSE.to_owned());
                    self.prompt.entries.push(condense.into());
                }
            }
            Err(error) => {
                let message = format!("the history cannot be read: {error}");
                let _ = self.reports.send(failed(self.call, message)).await;
                return;
            }
        }
        let purpose = self.prompt.purpose;
        let widened = self.tool_gate.widened(&self.prompt.settings, &self.rights);
        self.prompt.settings = widened.await;
        let settings = self.prompt.settings.clone();
        let price = self.model.price(&settings).await;
        let pins = self.tool_gate.managed_limits().await;
        if let Some(error) = pins.against_call(&settings, price.as_ref(), &self.used) {
            let _ = self.reports.send(refused(self.call, error)).await;
            return;
        }
        self.meter.begin(&self.prompt, price);
        let mut answer = self.model.call(self.prompt);
        let mut summary = String::new();
        let mut calls = 0;
        loop {
            let mut said = answer.next().await;
            let estimated = self.meter.observe(&mut said);
            let is_last = matches!(said, ModelEvent::Ended(..));
            let mut commands = match (purpose, said) {
                (Purpose::Answer, ModelEvent::Tool(item, asked)) => {
                    calls += 1;
                    let (hands, granted, now) = (&self.tool_gate, &self.granted, (self.clock)());
                    let judged = match self.tools.intent(&asked) {
                        _ if calls > CALLS_MAX => Judgement::too_many(&asked),
                        Some(meant) => {
                            let judged = hands.judge_others(&settings, granted, &asked, meant, now);
                            judged.await
                        }
                        None => hands.judge(thread, &settings, granted, &asked, now).await,
                    };
                    vec![called(self.call, item, asked, judged)]
                }
                (purpose, said) => heard(self.call, said, purpose, &mut summary),
            };
            if let Some(Command::EndModel(end)) = commands.last_mut() {
                end.price = price;
                end.estimated = estimated;
            }
            for command in commands {
                if self.reports.send(command).await.is_err() {
                    return;
                }
            }
            if is_last {
                return;
            }
        }
    }
}

/// What something said means as a command.
fn heard(call: u32, said: ModelEvent, purpose: Purpose, summary: &mut String) -> Vec<Command> {
    match (purpose, said) {
        (Purpose::Answer, ModelEvent::Started(item, body)) => {
            vec![Command::StartItem(Box::new(StartItem { call, item, body }))]
        }
        (Purpose::Answer, ModelEvent::Text(item, part, text)) => {
            vec![Command::AppendText(AppendText { item, part, text })]
        }
        (Purpose::Answer, ModelEvent::Completed(item, body, sealed)) => {
            let completed = CompleteItem {
                call,
                item,
                body,
                sealed: sealed.filter(kept),
            };
            vec![Command::CompleteItem(Box::new(completed))]
        }
        // While it condenses, what it writes is the summary and is shown to nobody.
        (Purpose::Compact, ModelEvent::Text(_, ItemPart::Text, text)) => {
            summary.push_str(&text);
            Vec::new()
        }
        (Purpose::Compact, ModelEvent::Ended(end, usage)) => {
            let mut commands = Vec::new();
            if matches!(end, ModelEnd::Done {}) && !summary.is_empty() {
                commands.push(Command::Compact(raddle_core::Compact {
                    call,
                    item: raddle_core::ItemId::mint(),
                    summary: std::mem::take(summary),
                }));
            }
            commands.push(ended(call, end, usage));
            commands
        }
        (Purpose::Compact, _) | (_, ModelEvent::Tool(..)) => Vec::new(),
        (Purpose::Answer, ModelEvent::Ended(end, usage)) => {
            vec![ended(call, end, usage)]
        }
    }
}

/// The model asks for a tool.
fn called(call: u32, item: ItemId, mut asked: ToolCall, judged: Judgement) -> Command {
    let Judgement {
        body,
        admission,
        ruling,
        approve_on_timeout: yes_in_the_end,
        alone,
    } = judged;
    asked.alone |= alone;
    Command::CallTool(Box::new(CallTool {
        call,
        item,
        body,
        asked,
        admission,
        ruling,
        approve_on_timeout: yes_in_the_end,
    }))
}

/// Whether something sealed is kept. Without it the vendor only knows less of what it thought.
fn kept(sealed: &Sealed) -> bool {
    let kept = sealed.fits();
    if !kept {
        tracing::warn!(
            vendor = sealed.vendor,
            "a sealed value is too large or too deep to be kept"
        );
    }
    kept
}

/// A call of the model ended by a fault of ours.
pub(crate) fn failed(call: u32, message: String) -> Command {
    refused(call, Failure::new(FailureKind::Internal, message))
}

/// A call of the model ended, or did not begin, because of this.
fn refused(call: u32, error: Failure) -> Command {
    ended(call, ModelEnd::Failed { error }, None)
}

fn ended(call: u32, end: ModelEnd, usage: Option<Usage>) -> Command {
    Command::EndModel(Box::new(EndModel {
        call,
        end,
        usage,
        estimated: false,
        price: None,
    }))
}
