//! Effects of a thread: starting and cancelling them.

use std::sync::Arc;

use raddle_core::policy::Amendment;
use raddle_core::ports::{Prompt, ToolJob};
use raddle_core::{
    BeginTurn, Command, Effect, ItemId, RequestAnswer, Resolution, TurnId, TurnKind,
};
use tokio::sync::{Mutex, watch};
use tracing::Instrument;

use super::Task;
use super::budgets::TaskBudgets;
use super::tool_questions::TaskQuestions;
use crate::estimate::UsageMeter;
use crate::hooks::HookRunner;
use crate::instructions::instructions;
use crate::tool_gate::{Approvals, CallContext, TaskActs, TaskReports, carry_out, tool_failed};
use crate::tools::OfferedTools;
use crate::work::{ModelWork, failed};

impl Task {
    pub(super) fn start(&mut self, effect: Effect) {
        match &effect {
            Effect::CallModel { call, .. } => {
                let thread = self.writer.thread();
                let Some(purpose) = thread.purpose() else {
                    return;
                };
                let settings = thread.effective_settings();
                let tools = OfferedTools::of(&thread.settings().client_tools)
                    .with_goal(thread.has_active_goal());
                let is_compaction_turn = thread
                    .turn()
                    .is_some_and(|it| it.kind == TurnKind::Compaction);
                let is_first_call = thread.turn().is_some_and(|it| it.calls == 1);
                if is_first_call {
                    self.ask_trust();
                }
                let turn = thread.turn().map(|it| it.id.clone());
                if self.continuations.0 != turn {
                    self.continuations = (turn.clone(), Arc::default());
                }
                let meter = UsageMeter::default();
                let span = tracing::info_span!(
                    target: crate::SPANS,
                    parent: &self.turn_log.span(),
                    "model_call",
                    provider = settings.provider.as_deref(),
                    model = settings.model.as_deref(),
                    attempt = thread.attempt()
                );
                let work = ModelWork {
                    journal: self.journal.clone(),
                    blobs: self.blobs.clone(),
                    model: self.shared.model.clone(),
                    prompt: Prompt {
                        thread: self.id,
                        purpose,
                        instructions: instructions(&settings),
                        attempt: thread.attempt(),
                        tools: tools.specs(self.shared.tool_gate.specs(&settings)),
                        settings,
                        entries: Vec::new(),
                        output_schema: thread.turn().and_then(|turn| turn.output_schema.clone()),
                    },
                    lineage: thread.lineage().to_vec(),
                    head: self.writer.stored(),
                    history: self.history.clone(),
                    overflows: thread.overflows(),
                    tools,
                    tool_gate: self.shared.tool_gate.clone(),
                    granted: thread.granted(),
                    rights: thread.rights(),
                    used: thread.used(self.shared.now()),
                    clock: self.shared.clock,
                    call: *call,
                    begins_turn: is_first_call && !is_compaction_turn,
                    meter: meter.clone(),
                    hooks: self.hook_runner(turn),
                    continuations: self.continuations.1.clone(),
                    compaction_trigger: match is_compaction_turn {
                        true => "manual",
                        false => "auto",
                    },
                    reports: self.reporter.clone(),
                };
                let (reporter, call) = (self.reporter.clone(), *call);
                self.writer
                    .meter(raddle_core::Meter::new(call, move || meter.read()));
                let running = tokio::spawn(work.run().instrument(span));
                self.work.insert(effect, running.abort_handle());
                tokio::spawn(async move {
                    // An internal error ends the turn instead of leaving it waiting.
                    if running.await.is_err_and(|error| error.is_panic()) {
                        let message = "internal error; see the server's log".to_owned();
                        let _ = reporter.send(failed(call, message)).await;
                    }
                });
            }
            Effect::RunTool { turn, item } => self.run_tool(turn.clone(), item.clone(), effect),
            Effect::BeginTurn { .. } => {
                let (shared, reporter) = (self.shared.clone(), self.reporter.clone());
                let settings = self.writer.thread().settings().clone();
                let input = self.writer.thread().next_input().to_vec();
                let beginning = async move {
                    let begin = BeginTurn {
                        turn: TurnId::mint(),
                        briefs: shared
                            .environment_reader
                            .briefs(&settings, input, shared.now())
                            .await,
                    };
                    let _ = reporter.send(Command::BeginTurn(begin)).await;
                };
                let running = tokio::spawn(beginning.in_current_span());
                self.work.insert(effect, running.abort_handle());
            }
            Effect::StopTool { item } => self.work.stop_tool(item),
        }
    }

    fn hook_runner(&self, turn: Option<TurnId>) -> HookRunner {
        HookRunner {
            hooks: self.shared.tool_gate.hooks.clone(),
            notices: Arc::new(self.notifier.clone()),
            thread: self.id,
            turn,
        }
    }

    fn run_tool(&mut self, turn: TurnId, item: ItemId, effect: Effect) {
        let thread = self.writer.thread();
        let open = thread.turn().into_iter().flat_map(|it| &it.items);
        let Some(open) = open.into_iter().find(|open| open.item.id == item) else {
            return;
        };
        let span = tracing::info_span!(
            target: crate::SPANS,
            parent: &self.turn_log.span(),
            "tool_call",
            tool = open.item.call.as_ref().map(|it| it.tool.as_str()),
            item = %item
        );
        let (stop, stopped) = watch::channel(());
        let mut stop_signal = stopped.clone();
        let body = open.item.body.clone();
        let hooks = self.hook_runner(Some(turn.clone()));
        let reports = TaskReports {
            reporter: self.reporter.clone(),
            notifier: self.notifier.clone(),
            thread: self.id,
            turn: turn.clone(),
            item: item.clone(),
        };
        let settings = thread.effective_settings();
        let questions = TaskQuestions {
            sender: self.questioner.clone(),
            gate: self.shared.tool_gate.clone(),
            approval: settings.approval.clone(),
            item: item.clone(),
            clock: self.shared.clock,
        };
        let questions = Arc::new(questions);
        let acts = CallContext {
            gate: self.shared.tool_gate.clone(),
            model: self.shared.model.clone(),
            budgets: Arc::new(TaskBudgets {
                shared: self.shared.clone(),
                thread: self.id,
            }),
            model_calls: Mutex::default(),
            hooks: hooks.clone(),
            turn: turn.clone(),
            is_ephemeral: thread.is_ephemeral(),
            item: open.item.clone(),
            settings: settings.clone(),
            granted: thread.granted(),
            rights: thread.rights(),
            questions: questions.clone(),
            reports: reports.clone(),
            reporter: self.reporter.clone(),
            clock: self.shared.clock,
        };
        let hunk_cwd = open.hunk_cwd(&settings).to_owned();
        let job = ToolJob {
            thread: self.id,
            turn,
            is_ephemeral: thread.is_ephemeral(),
            item: open.item.clone(),
            settings,
            authorization: None,
            hunks: open.hunks().to_vec(),
            hunk_cwd,
            reports: Box::new(reports),
            questions,
            acts: Arc::new(TaskActs(Arc::new(acts))),
            stopped: Box::pin(async move { while stop_signal.changed().await.is_ok() {} }),
        };
        let approvals = Approvals {
            once: open.approved_digest().map(str::to_owned),
            session: thread.granted(),
            rights: thread.rights(),
        };
        let (gate, reporter) = (self.shared.tool_gate.clone(), self.reporter.clone());
        let blobs = self.blobs.clone();
        let job = (job, approvals);
        let call = carry_out(gate, blobs, job, hooks, stopped, reporter.clone());
        let running = tokio::spawn(call.instrument(span));
        self.work
            .insert_tool(effect, running.abort_handle(), item.clone(), stop);
        tokio::spawn(async move {
            if running.await.is_err_and(|error| error.is_panic()) {
                let _ = reporter.send(tool_failed(item, body)).await;
            }
        });
    }

    /// Stores the rule of an approval with a rule. The approval stands even if that fails.
    pub(super) fn amend(&self, resolution: &Resolution) {
        let Resolution::Answered { by, answer } = resolution else {
            return;
        };
        let RequestAnswer::AcceptWithRule { rule } = &**answer else {
            return;
        };
        let (thread, by) = (self.id, by.clone());
        let (rules, reporter) = (
            self.shared.tool_gate.rules.clone(),
            self.reporter.downgrade(),
        );
        let amendment = Amendment::of_answer(rule);
        let amending = async move {
            let amended = match amendment {
                Ok(amendment) => rules.amend(amendment).await.map_err(|it| it.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let Err(why) = amended else {
                return tracing::info!(by, "a rule was stored");
            };
            tracing::warn!(%thread, by, why, "a rule was not stored");
            let warning =
                format!("The rule was not stored: {why}. The command was allowed this once.");
            if let Some(reporter) = reporter.upgrade() {
                let _ = reporter.send(Command::Warn(warning)).await;
            }
        };
        tokio::spawn(amending.instrument(self.turn_log.span()));
    }

    /// Ends the commands that calls of a turn left running, and warns the user.
    pub(super) fn end_turn_tools(&self, turn: TurnId) {
        let (thread, reporter) = (self.id, self.reporter.downgrade());
        let ending = self.shared.tool_gate.tools.end_turn(thread, turn);
        let ending = async move {
            let ended = ending.await;
            if ended.is_empty() {
                return;
            }
            tracing::info!(?ended, "commands ended with their turn");
            let names = ended.join(", ");
            let warning = format!("Still running when the turn ended, and ended with it: {names}");
            if let Some(reporter) = reporter.upgrade() {
                let _ = reporter.send(Command::Warn(warning)).await;
            }
        };
        tokio::spawn(ending.instrument(self.turn_log.span()));
    }

    /// Cancels the running work of a turn at once, before its interrupt is stored.
    pub(super) fn cancel_turn_work(&mut self, requested: Option<&TurnId>) {
        let Some(running) = self.writer.thread().turn() else {
            return;
        };
        if requested.is_none_or(|named| *named == running.id) {
            self.work.cancel_turn(&running.id);
        }
    }
}
