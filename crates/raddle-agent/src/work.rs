//! Model calls: calling the model and reporting its events.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use raddle_core::ports::{HookEvent, HookRuling, Journal, Model, ModelEvent, Prompt, Requirement};
use raddle_core::{
    Admission, AppendText, Ask, CallTool, Command, ContextEntry, EndModel, Failure, FailureKind,
    Grant, ItemBody, ItemId, ItemPart, ItemUpdate, Measure, ModelEnd, Purpose, Scope, Sealed, Seq,
    Settings, Span, Timestamp, ToolCall, UpdateItem, Usage,
};
use tokio::sync::mpsc;

use crate::context::{self, History};
use crate::estimate::UsageMeter;
use crate::hooks::{HookRunner, add_prompt};
use crate::images::{SHOWN_BYTES_MAX, look_at};
use crate::instructions::COMPACT;
use crate::thread_blobs::ThreadBlobs;
use crate::tool_gate::{Judgement, ToolGate, after};
use crate::tools::OfferedTools;

/// Limit: tool calls of one model response; beyond it, the others are not run, and the model is
/// notified.
pub(crate) const CALLS_MAX: usize = 128;

/// Limit: times that `Stop` hooks continue one turn; beyond it, the turn ends without them.
const CONTINUATIONS_MAX: u32 = 8;

/// Inputs of a model call.
pub(crate) struct ModelWork {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) blobs: ThreadBlobs,
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
    /// Whether this is the first call of a turn that may call tools.
    pub(crate) begins_turn: bool,
    pub(crate) meter: UsageMeter,
    pub(crate) hooks: HookRunner,
    /// How often hooks continued this turn.
    pub(crate) continuations: Arc<AtomicU32>,
    /// Cause of a summary of the history, for hooks.
    pub(crate) compaction_trigger: &'static str,
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
                look_at(&self.blobs, &mut self.prompt.entries, images).await;
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
        let mut requirement = Requirement::None;
        if self.begins_turn {
            requirement = self.tool_gate.requirement(&self.prompt.settings).await;
        }
        if let Requirement::Missing(message) = requirement {
            let error = Failure::new(FailureKind::Other, message);
            let _ = self.reports.send(refused(self.call, error)).await;
            return;
        }
        if !self.rights.is_empty() || requirement == Requirement::Met {
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
        if purpose == Purpose::Compact {
            let trigger = self.compaction_trigger;
            let rejected = self
                .hooks
                .compaction(HookEvent::PreCompact, &settings, trigger);
            if let Some(reason) = rejected.await {
                let message = format!("a hook rejected the summary of the history: {reason}");
                let error = Failure::new(FailureKind::Other, message);
                let _ = self.reports.send(refused(self.call, error)).await;
                return;
            }
        }
        self.meter.begin(&self.prompt, price);
        let prompt = self.take_prompt();
        let mut answer = self.model.call(prompt);
        let mut summary = String::new();
        let mut last_message = None;
        let mut calls = 0;
        loop {
            let mut event = answer.next().await;
            let estimated = self.meter.observe(&mut event);
            let is_last = matches!(event, ModelEvent::Ended(..));
            let mut commands = match (purpose, event) {
                (Purpose::Answer, ModelEvent::Tool(item, tool_call)) => {
                    calls += 1;
                    match calls > CALLS_MAX {
                        true => {
                            let judgement = Judgement::too_many(&tool_call);
                            vec![call_tool(self.call, item, tool_call, judgement)]
                        }
                        false => self.judge(&settings, item, tool_call).await,
                    }
                }
                (Purpose::Answer, ModelEvent::Ended(end, usage)) => {
                    let mut commands = Vec::new();
                    if calls == 0 && matches!(end, ModelEnd::Done {}) {
                        let last_message = last_message.take();
                        commands.extend(self.continued(&settings, last_message).await);
                    }
                    commands.push(ended(self.call, end, usage));
                    commands
                }
                (purpose, event) => commands_for(self.call, event, purpose, &mut summary),
            };
            if let Some(Command::EndModel(end)) = commands.last_mut() {
                end.price = price;
                end.estimated = estimated;
            }
            let is_compacted = commands.iter().any(|it| matches!(it, Command::Compact(_)));
            if let Some(text) = commands.iter().find_map(message_of) {
                last_message = Some(text);
            }
            if is_compacted {
                let trigger = self.compaction_trigger;
                // The summary is made, so a rejection has no effect.
                let after = self
                    .hooks
                    .compaction(HookEvent::PostCompact, &settings, trigger);
                after.await;
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

    /// Returns the prompt, and leaves an empty one.
    fn take_prompt(&mut self) -> Prompt {
        let empty = Prompt {
            thread: self.prompt.thread,
            settings: Settings::default(),
            purpose: self.prompt.purpose,
            instructions: String::new(),
            attempt: self.prompt.attempt,
            tools: Vec::new(),
            entries: Vec::new(),
            output_schema: None,
        };
        std::mem::replace(&mut self.prompt, empty)
    }

    /// Judges a tool call by the policy, then by the hooks, which make its ruling stricter.
    async fn judge(
        &self,
        settings: &Settings,
        item: ItemId,
        mut tool_call: ToolCall,
    ) -> Vec<Command> {
        let mut commands = Vec::new();
        let mut judgement = self.judge_by_policy(settings, &tool_call).await;
        if !matches!(judgement.admission, Admission::Deny(_)) {
            let names = self.tool_gate.tools.names(settings, &tool_call);
            let call = (&tool_call, &judgement.body);
            let decision = self.hooks.before_tool(settings, call, names.clone()).await;
            if let Some(changed) = decision.changed {
                tool_call = changed;
                judgement = self.judge_by_policy(settings, &tool_call).await;
            }
            let expires_at = match &decision.ruling {
                HookRuling::Ask(_) => self.deadline().await,
                HookRuling::Pass | HookRuling::Deny(_) => None,
            };
            let tighten = |judgement: Judgement, ruling, call: &ToolCall| {
                judgement.tightened(ruling, call, settings, &self.granted, expires_at)
            };
            judgement = tighten(judgement, decision.ruling, &tool_call);
            if is_approval_request(&judgement.admission) {
                let call = (&tool_call, &judgement.body);
                let ruling = self.hooks.approval_requested(settings, call, names).await;
                judgement = tighten(judgement, ruling, &tool_call);
            }
            commands.extend(decision.prompt.map(|it| add_prompt(self.call, it)));
        }
        commands.push(call_tool(self.call, item, tool_call, judgement));
        commands
    }

    /// Returns the deadline of a request for approval that is made now.
    async fn deadline(&self) -> Option<Timestamp> {
        let policy = self.tool_gate.policy().await?;
        let after_ms = policy.unattended().after_ms();
        after_ms.map(|ms| after((self.clock)(), ms))
    }

    async fn judge_by_policy(&self, settings: &Settings, tool_call: &ToolCall) -> Judgement {
        let (gate, granted, now) = (&self.tool_gate, &self.granted, (self.clock)());
        match self.tools.intent(tool_call) {
            Some(intent) => {
                let judgement = gate.judge_others(settings, granted, tool_call, intent, now);
                judgement.await
            }
            None => {
                let thread = self.hooks.thread;
                gate.judge(thread, settings, granted, tool_call, now).await
            }
        }
    }

    /// Returns the text with which hooks continue a turn that the model wants to end.
    async fn continued(&self, settings: &Settings, message: Option<String>) -> Option<Command> {
        let count = self.continuations.load(Ordering::Relaxed);
        if count >= CONTINUATIONS_MAX {
            tracing::warn!(count, "hooks continue no turn more often; it ends");
            return None;
        }
        let prompt = self.hooks.stop(settings, message, count > 0).await?;
        self.continuations.store(count + 1, Ordering::Relaxed);
        Some(add_prompt(self.call, prompt))
    }
}

/// Returns the text of a message that a report completes.
fn message_of(command: &Command) -> Option<String> {
    let Command::UpdateItem(UpdateItem { update, .. }) = command else {
        return None;
    };
    match update {
        ItemUpdate::Completed(_, body, _) => match &**body {
            ItemBody::AgentMessage(it) => Some(it.text.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the user must approve a call. Other questions to the user have an answer.
fn is_approval_request(admission: &Admission) -> bool {
    let Admission::Ask { ask, .. } = admission else {
        return false;
    };
    matches!(ask, Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_))
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
