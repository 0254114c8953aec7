//! Model calls: calling the model and reporting its events.

use std::collections::BTreeSet;
use std::sync::Arc;

use raddle_core::ports::{Blobs, Journal, Model, ModelEvent, Prompt};
use raddle_core::{
    AppendText, CallTool, Command, ContextEntry, EndModel, Failure, FailureKind, Grant, ItemId,
    ItemPart, ItemUpdate, Measure, ModelEnd, Purpose, Scope, Sealed, Seq, Span, Timestamp,
    ToolCall, UpdateItem, Usage,
};
use tokio::sync::mpsc;

use crate::context::{self, History};
use crate::estimate::UsageMeter;
use crate::images::{SHOWN_BYTES_MAX, look_at};
use crate::instructions::COMPACT;
use crate::tool_gate::{Judgement, ToolGate};
use crate::tools::OfferedTools;

/// Limit: tool calls of one model response; beyond it, the others are not run, and the model is
/// notified.
pub(crate) const CALLS_MAX: usize = 128;

/// Inputs of a model call.
pub(crate) struct ModelWork {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) prompt: Prompt,
    pub(crate) lineage: Vec<Span>,
    pub(crate) head: Seq,
    pub(crate) history: Arc<History>,
    /// How often in a row the history did not fit into the model's context.
    pub(crate) overflows: u32,
    pub(crate) tools: OfferedTools,
    pub(crate) tool_gate: Arc<ToolGate>,
    /// The acts approved for the session.
    pub(crate) granted: BTreeSet<String>,
    /// Granted permissions beyond the sandbox.
    pub(crate) rights: Grant,
    /// Usage that counts towards budgets.
    pub(crate) used: Vec<(Scope, Measure, u64)>,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) call: u32,
    pub(crate) meter: UsageMeter,
    pub(crate) reports: mpsc::Sender<Command>,
}

impl ModelWork {
    /// Calls the model and reports all its events. Ends early when the report channel is closed.
    pub(crate) async fn run(mut self) {
        let thread = self.prompt.thread;
        let (lineage, head) = (&self.lineage, self.head);
        let built = context::build(&*self.journal, thread, lineage, head, &self.history);
        match built.await {
            Ok(entries) => {
                self.prompt.entries = entries;
                // Compacting uses text only: images that overflowed a call must not overflow this
                // one too.
                let images = match self.prompt.purpose {
                    Purpose::Answer => SHOWN_BYTES_MAX,
                    Purpose::Compact => 0,
                };
                look_at(&*self.blobs, &mut self.prompt.entries, images).await;
                if self.prompt.purpose == Purpose::Compact {
                    // A history that did not fit for an answer may just fit for compacting; after
                    // that it is shortened.
                    let halvings = self.overflows.saturating_sub(1);
                    context::shorten(&mut self.prompt.entries, halvings);
                    let compact = ContextEntry::Note(COMPACT.to_owned());
                    self.prompt.entries.push(compact.into());
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
        if !self.rights.is_empty() {
            let built_in = self.tool_gate.specs(&self.prompt.settings);
            self.prompt.tools = self.tools.specs(built_in);
        }
        let settings = self.prompt.settings.clone();
        let price = self.model.price(&settings).await;
        let limits = self.tool_gate.managed_limits().await;
        if let Some(error) = limits.call_objection(&settings, price.as_ref(), &self.used) {
            let _ = self.reports.send(refused(self.call, error)).await;
            return;
        }
        self.meter.begin(&self.prompt, price);
        let mut answer = self.model.call(self.prompt);
        let mut summary = String::new();
        let mut calls = 0;
        loop {
            let mut event = answer.next().await;
            let estimated = self.meter.observe(&mut event);
            let is_last = matches!(event, ModelEvent::Ended(..));
            let mut commands = match (purpose, event) {
                (Purpose::Answer, ModelEvent::Tool(item, tool_call)) => {
                    calls += 1;
                    let (gate, granted, now) = (&self.tool_gate, &self.granted, (self.clock)());
                    let judgement = match self.tools.intent(&tool_call) {
                        _ if calls > CALLS_MAX => Judgement::too_many(&tool_call),
                        Some(intent) => {
                            let judgement =
                                gate.judge_others(&settings, granted, &tool_call, intent, now);
                            judgement.await
                        }
                        None => {
                            gate.judge(thread, &settings, granted, &tool_call, now)
                                .await
                        }
                    };
                    vec![call_tool(self.call, item, tool_call, judgement)]
                }
                (purpose, event) => commands_for(self.call, event, purpose, &mut summary),
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

/// Converts a model event to commands.
fn commands_for(
    call: u32,
    event: ModelEvent,
    purpose: Purpose,
    summary: &mut String,
) -> Vec<Command> {
    match (purpose, event) {
        (Purpose::Answer, ModelEvent::Item(mut update)) => {
            if let ItemUpdate::Completed(_, _, sealed) = &mut update {
                sealed.take_if(|it| !is_storable(it));
            }
            vec![Command::UpdateItem(UpdateItem { call, update })]
        }
        // While compacting, the output is the summary and is not shown.
        (
            Purpose::Compact,
            ModelEvent::Item(ItemUpdate::Text(AppendText {
                part: ItemPart::Text,
                text,
                ..
            })),
        ) => {
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

/// Converts a tool call of the model to a command.
fn call_tool(call: u32, item: ItemId, mut tool_call: ToolCall, judgement: Judgement) -> Command {
    let Judgement {
        body,
        admission,
        ruling,
        approve_on_timeout,
        alone,
    } = judgement;
    tool_call.alone |= alone;
    Command::CallTool(Box::new(CallTool {
        call,
        item,
        body,
        tool_call,
        admission,
        ruling,
        approve_on_timeout,
    }))
}

/// Whether a sealed value is small enough to be stored. Without it, the vendor gets back less of
/// its own reasoning.
fn is_storable(sealed: &Sealed) -> bool {
    let fits = sealed.fits();
    if !fits {
        tracing::warn!(
            vendor = sealed.vendor,
            "a sealed value is too large or too deep to be stored"
        );
    }
    fits
}

/// The end of a model call by an internal error.
pub(crate) fn failed(call: u32, message: String) -> Command {
    refused(call, Failure::new(FailureKind::Internal, message))
}

/// The end of a model call that failed or did not begin.
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
