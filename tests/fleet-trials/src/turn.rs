//! Endless turns of a thread, with a scripted model and scripted tools.

use std::time::Duration;

use anyhow::Result;
use raddle_core::{
    Admission, AgentMessage, AppendText, CallTool, Command, CommandRun, CommandSource, Compact,
    Effect, EndModel, EndTool, Input, InputMessage, ItemBody, ItemId, ItemPart, ItemStatus,
    ItemUpdate, ModelEnd, Output, Purpose, StartTurn, ToolCall, TurnKind, UpdateItem, Usage,
};
use support::Rng;
use tokio::sync::watch;

use crate::live::FleetThread;

/// Maximum pause between two pieces of text, in milliseconds.
const PAUSE_MAX: u64 = 6;

/// How a node goes on with a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// It plays one turn after another.
    GoOn,
    /// It gives the thread up at the next moment, also within a turn.
    Release,
    /// It ends the turn, and then gives the thread up.
    EndTurn,
}

/// Plays turns until the thread ends, or is to be released.
pub async fn play(
    live: &mut FleetThread<'_>,
    rng: &mut Rng,
    orders: &watch::Receiver<Play>,
) -> Result<()> {
    let mut actor = TurnActor { live, rng, orders };
    while actor.live.ended.is_none() {
        if actor.is_to_release() {
            return actor.live.send(Command::Release).await;
        }
        actor.step().await?;
    }
    Ok(())
}

struct TurnActor<'w, 'a> {
    live: &'w mut FleetThread<'a>,
    rng: &'w mut Rng,
    orders: &'w watch::Receiver<Play>,
}

impl TurnActor<'_, '_> {
    fn is_to_release(&self) -> bool {
        match *self.orders.borrow() {
            Play::GoOn => false,
            Play::Release => true,
            Play::EndTurn => !self.live.has_turn(),
        }
    }

    /// Whether work stops at once: the node would store no more of it.
    fn is_cut_short(&self) -> bool {
        self.live.ended.is_some() || *self.orders.borrow() == Play::Release
    }

    /// Does the next pending work, or starts a turn.
    async fn step(&mut self) -> Result<()> {
        match self.live.pending() {
            Some(Effect::CallModel { call, .. }) => self.model(call).await,
            Some(Effect::RunTool { item, .. }) => self.tool(item, Output::text("done")).await,
            Some(Effect::StopTool { item }) => self.tool(item, Output::failure("stopped")).await,
            Some(Effect::BeginTurn { .. }) | None => self.start().await,
        }
    }

    fn id(&mut self, letter: char) -> String {
        format!("{letter}-{:016x}", self.rng.bits())
    }

    async fn start(&mut self) -> Result<()> {
        let text = self.id('q');
        let message = InputMessage {
            item: self.id('u').as_str().into(),
            input: vec![Input::text(&text)],
            client_id: None,
            hook_prompt: None,
        };
        let start = StartTurn {
            turn: self.id('t').as_str().into(),
            kind: TurnKind::Work,
            message: Some(message),
            change: Box::default(),
            briefs: Vec::new(),
            principal: None,
            root: None,
            output_schema: None,
        };
        self.live.send(Command::StartTurn(Box::new(start))).await
    }

    async fn model(&mut self, call: u32) -> Result<()> {
        if self.live.purpose() == Some(Purpose::Compact) {
            let (item, summary) = (self.id('c').as_str().into(), self.id('s'));
            let compact = Compact {
                call,
                item,
                summary,
            };
            self.report(Command::Compact(compact)).await?;
            return self.end_model(call).await;
        }
        for _ in 0..self.rng.range(1, 3) {
            self.message(call).await?;
            if self.is_cut_short() {
                return Ok(());
            }
        }
        if self.rng.percent(40) {
            let tool = CallTool {
                call,
                item: self.id('i').as_str().into(),
                body: command(None),
                tool_call: ToolCall {
                    id: self.id('c'),
                    tool: "shell".to_owned(),
                    arguments: "{\"command\":\"make check\"}".to_owned(),
                    freeform: false,
                    alone: false,
                },
                admission: Admission::Run,
                ruling: None,
                approve_on_timeout: false,
            };
            self.report(Command::CallTool(Box::new(tool))).await?;
        }
        self.end_model(call).await
    }

    /// Streams a message, most pieces in an append of their own.
    async fn message(&mut self, call: u32) -> Result<()> {
        let item: ItemId = self.id('i').as_str().into();
        let body = ItemBody::AgentMessage(AgentMessage::default());
        let update = ItemUpdate::Started(item.clone(), Box::new(body));
        self.report(Command::UpdateItem(UpdateItem { call, update }))
            .await?;
        for _ in 0..self.rng.range(1, 25) {
            let update = ItemUpdate::Text(AppendText {
                item: item.clone(),
                part: ItemPart::Text,
                text: self.id('p'),
            });
            let command = Command::UpdateItem(UpdateItem { call, update });
            if self.rng.percent(20) {
                self.live.report(command)?;
                continue;
            }
            self.report(command).await?;
            if self.is_cut_short() {
                return Ok(());
            }
            let pause = self.rng.below(PAUSE_MAX);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Ok(())
    }

    async fn report(&mut self, command: Command) -> Result<()> {
        self.live.report(command)?;
        if self.live.ended.is_some() {
            return Ok(());
        }
        self.live.settle().await
    }

    async fn end_model(&mut self, call: u32) -> Result<()> {
        let end = EndModel {
            call,
            end: ModelEnd::Done {},
            usage: Some(Usage {
                input: 1000,
                output: 100,
                ..Usage::default()
            }),
            estimated: false,
            price: None,
        };
        self.report(Command::EndModel(Box::new(end))).await
    }

    async fn tool(&mut self, item: ItemId, output: Output) -> Result<()> {
        let end = EndTool {
            item,
            status: ItemStatus::Completed,
            body: command(Some(0)),
            output,
        };
        self.report(Command::EndTool(Box::new(end))).await
    }
}

fn command(exit_code: Option<i32>) -> ItemBody {
    ItemBody::Command(CommandRun {
        command: "make check".to_owned(),
        cwd: "/w".to_owned(),
        actions: Vec::new(),
        source: CommandSource::Agent,
        terminal: None,
        printed: None,
        exit_code,
        duration_ms: exit_code.map(|_| 12),
        time_ms_max: None,
    })
}
