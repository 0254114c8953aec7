//! The work that a thread owes, started and cut off.

use raddle_core::ports::Prompt;
use raddle_core::{BeginTurn, Command, Effect, EndTool, ItemStatus, Output, TurnId};

use super::Task;
use crate::instructions::instructions;
use crate::tools::Offered;
use crate::work::{ModelWork, failed};

impl Task {
    pub(super) fn start(&mut self, effect: Effect) {
        match &effect {
            Effect::CallModel { call, .. } => {
                let thread = self.owner.thread();
                let Some(purpose) = thread.purpose() else {
                    return;
                };
                let tools =
                    Offered::of(&thread.settings().client_tools).with_goal(thread.pursues());
                let work = ModelWork {
                    journal: self.journal.clone(),
                    blobs: self.blobs.clone(),
                    model: self.shared.model.clone(),
                    prompt: Prompt {
                        thread: self.id,
                        settings: thread.settings().clone(),
                        purpose,
                        instructions: instructions(thread.settings()),
                        attempt: thread.attempt(),
                        tools: tools.specs(),
                        entries: Vec::new(),
                        output_schema: thread.turn().and_then(|turn| turn.output_schema.clone()),
                    },
                    lineage: thread.lineage().to_vec(),
                    head: self.owner.stored(),
                    history: self.history.clone(),
                    tools,
                    call: *call,
                    reports: self.reporter.clone(),
                };
                let (reporter, call) = (self.reporter.clone(), *call);
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
            Effect::RunTool { item, .. } => {
                // There are no tools of ours yet: what cannot run says so at once.
                let open = self
                    .owner
                    .thread()
                    .turn()
                    .into_iter()
                    .flat_map(|it| &it.items);
                let body = open.into_iter().find(|open| open.item.id == *item);
                let Some(body) = body.map(|open| open.item.body.clone()) else {
                    return;
                };
                let end = EndTool {
                    item: item.clone(),
                    status: ItemStatus::Failed,
                    body,
                    output: Output::failure("No tool can be run here."),
                };
                self.report(Command::EndTool(Box::new(end)));
            }
            Effect::BeginTurn { .. } => {
                let (shared, reporter) = (self.shared.clone(), self.reporter.clone());
                let settings = self.owner.thread().settings().clone();
                let running = tokio::spawn(async move {
                    let begin = BeginTurn {
                        turn: TurnId::mint(),
                        briefs: shared.lookout.briefs(&settings, shared.now()).await,
                    };
                    let _ = reporter.send(Command::BeginTurn(begin)).await;
                });
                self.work.retain(|_, work| !work.is_finished());
                self.work.insert(effect, running.abort_handle());
            }
            Effect::StopTool { .. } => {}
        }
    }

    /// What a turn waits for ends at once, before its interrupt is stored.
    pub(super) fn cut_off(&self, named: Option<&TurnId>) {
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
    }
}
