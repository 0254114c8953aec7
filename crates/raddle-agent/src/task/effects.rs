//! The work that a thread owes, started and cut off.

use raddle_core::policy::Amendment;
use raddle_core::ports::{Prompt, ToolJob};
use raddle_core::{BeginTurn, Command, Effect, ItemId, RequestAnswer, Resolution, TurnId};
use tokio::sync::watch;

use super::Task;
use crate::estimate::UsageMeter;
use crate::instructions::instructions;
use crate::tool_gate::{Approvals, TaskReports, carry_out, tool_failed};
use crate::tools::OfferedTools;
use crate::work::{ModelWork, failed};

impl Task {
    pub(super) fn start(&mut self, effect: Effect) {
        match &effect {
            Effect::CallModel { call, .. } => {
                let thread = self.owner.thread();
                let Some(purpose) = thread.purpose() else {
                    return;
                };
                let settings = thread.routed();
                let tools =
                    OfferedTools::of(&thread.settings().client_tools).with_goal(thread.pursues());
                let meter = UsageMeter::default();
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
                    head: self.owner.stored(),
                    history: self.history.clone(),
                    overflows: thread.overflows(),
                    tools,
                    tool_gate: self.shared.tool_gate.clone(),
                    granted: thread.granted(),
                    rights: thread.rights(),
                    used: thread.used(self.shared.now()),
                    clock: self.shared.clock,
                    call: *call,
                    meter: meter.clone(),
                    reports: self.reporter.clone(),
                };
                let (reporter, call) = (self.reporter.clone(), *call);
                self.owner
                    .meter(raddle_core::Meter::new(call, move || meter.read()));
                let running = tokio::spawn(work.run());
                self.work.retain(|_, work| !work.is_finished());
                self.work.insert(effect, running.abort_handle());
                tokio::spawn(async move {
                    // A fault of ours ends the turn, it does not leave it waiting.
                    if running.await.is_err_and(|error| error.is_panic()) {
                        let message = "the server failed inside; its log says more".to_owned();
                        let _ = reporter.send(failed(call, message)).await;
                    }
                });
            }
            Effect::RunTool { turn, item } => self.run_tool(turn.clone(), item.clone(), effect),
            Effect::BeginTurn { .. } => {
                let (shared, reporter) = (self.shared.clone(), self.reporter.clone());
                let settings = self.owner.thread().settings().clone();
                let running = tokio::spawn(async move {
                    let begin = BeginTurn {
                        turn: TurnId::mint(),
                        briefs: shared
                            .environment_reader
                            .briefs(&settings, shared.now())
                            .await,
                    };
                    let _ = reporter.send(Command::BeginTurn(begin)).await;
                });
                self.work.retain(|_, work| !work.is_finished());
                self.work.insert(effect, running.abort_handle());
            }
            // Who listens for this hears that nobody holds the other end any more.
            Effect::StopTool { item } => drop(self.stops.remove(item)),
        }
    }

    fn run_tool(&mut self, turn: TurnId, item: ItemId, effect: Effect) {
        let thread = self.owner.thread();
        let open = thread.turn().into_iter().flat_map(|it| &it.items);
        let Some(open) = open.into_iter().find(|open| open.item.id == item) else {
            return;
        };
        let (stop, stopped) = watch::channel(());
        let mut told = stopped.clone();
        let body = open.item.body.clone();
        let job = ToolJob {
            thread: self.id,
            turn,
            item: open.item.clone(),
            settings: thread.routed(),
            authorization: None,
            reports: Box::new(TaskReports(self.reporter.clone())),
            stopped: Box::pin(async move { while told.changed().await.is_ok() {} }),
        };
        let yes = Approvals {
            once: open.approved_digest().map(str::to_owned),
            session: thread.granted(),
            rights: thread.rights(),
        };
        let (hands, reporter) = (self.shared.tool_gate.clone(), self.reporter.clone());
        let blobs = self.blobs.clone();
        let running = tokio::spawn(carry_out(
            hands,
            blobs,
            (job, yes),
            stopped,
            reporter.clone(),
        ));
        self.work.retain(|_, work| !work.is_finished());
        self.stops.retain(|_, stop| !stop.is_closed());
        self.work.insert(effect, running.abort_handle());
        self.stops.insert(item.clone(), stop);
        tokio::spawn(async move {
            if running.await.is_err_and(|error| error.is_panic()) {
                let _ = reporter.send(tool_failed(item, body)).await;
            }
        });
    }

    /// Someone said yes by a rule, which is written down. The yes stands whatever becomes of the rule.
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
        tokio::spawn(async move {
            let amended = match amendment {
                Ok(amendment) => rules.amend(amendment).await.map_err(|it| it.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let Err(why) = amended else {
                return tracing::info!(%thread, by, "a rule was written down");
            };
            tracing::warn!(%thread, by, why, "a rule was not written down");
            let warning =
                format!("The rule was not written down: {why}. The command was allowed this once.");
            if let Some(reporter) = reporter.upgrade() {
                let _ = reporter.send(Command::Warn(warning)).await;
            }
        });
    }

    /// What calls of a turn left running ends with the turn, and the user hears of it.
    pub(super) fn end_with(&self, turn: TurnId) {
        let (thread, reporter) = (self.id, self.reporter.downgrade());
        let ending = self.shared.tool_gate.tools.end_turn(thread, turn);
        tokio::spawn(async move {
            let ended = ending.await;
            if ended.is_empty() {
                return;
            }
            tracing::info!(%thread, ?ended, "commands ended with their turn");
            let names = ended.join(", ");
            let warning = format!("Still running when the turn ended, and ended with it: {names}");
            if let Some(reporter) = reporter.upgrade() {
                let _ = reporter.send(Command::Warn(warning)).await;
            }
        });
    }

    /// What a turn waits for ends at once, before its interrupt is stored.
    pub(super) fn cut_off(&mut self, named: Option<&TurnId>) {
        let Some(running) = self.owner.thread().turn() else {
            return;
        };
        if named.is_some_and(|named| *named != running.id) {
            return;
        }
        for (effect, work) in &self.work {
            if matches!(effect, Effect::CallModel { turn, .. } if *turn == running.id) {
                work.abort();
            }
        }
        self.stops.clear();
    }
}
