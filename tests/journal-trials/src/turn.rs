//! Turns, played with a scripted model and scripted tools.

use anyhow::{Context, Result, bail};
use raddle_core::{
    Admission, AgentMessage, AppendText, CallTool, Command, CommandRun, Compact, Effect, EndModel,
    EndTool, Input, InputMessage, ItemBody, ItemPart, ItemStatus, ModelEnd, NamedTool, Output,
    Purpose, StartItem, StartTurn, ToolCall, TurnId, TurnKind, Usage,
};

use crate::live::{AppendListener, LiveThread};
use crate::rng::Rng;

/// What the model says in one call.
#[derive(Clone, Debug, Default)]
pub struct ModelOutput {
    /// A message, piece by piece.
    pub pieces: Vec<String>,
    /// A tool it asks for, by what comes of it.
    pub tool: Option<Output>,
    /// What the turn has changed so far.
    pub diff: Option<String>,
}

/// How the words of work reach the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Each in a round of its own, so that there are many appends.
    Fine,
    /// As many together as can be.
    Coarse,
}

/// Plays a turn from its input to its end.
pub async fn play(
    live: &mut LiveThread<'_>,
    input: Vec<Input>,
    says: Vec<ModelOutput>,
    grain: Grain,
    rng: &mut Rng,
    hears: &mut dyn AppendListener,
) -> Result<TurnId> {
    let message = InputMessage {
        item: rng.id('u').as_str().into(),
        input,
        client_id: None,
    };
    let turn = start(live, TurnKind::Work, Some(message), rng, hears).await?;
    finish(live, says, grain, rng, hears).await?;
    Ok(turn)
}

/// Plays a turn that condenses the history.
pub async fn compact(
    live: &mut LiveThread<'_>,
    rng: &mut Rng,
    hears: &mut dyn AppendListener,
) -> Result<()> {
    start(live, TurnKind::Compaction, None, rng, hears).await?;
    finish(live, Vec::new(), Grain::Coarse, rng, hears).await
}

async fn start(
    live: &mut LiveThread<'_>,
    kind: TurnKind,
    message: Option<InputMessage>,
    rng: &mut Rng,
    hears: &mut dyn AppendListener,
) -> Result<TurnId> {
    let turn: TurnId = rng.id('t').as_str().into();
    let start = StartTurn {
        turn: turn.clone(),
        kind,
        message,
        change: Box::default(),
        briefs: Vec::new(),
        principal: None,
        root: None,
        output_schema: None,
    };
    let started = live.order(Command::StartTurn(Box::new(start)), hears);
    started.await?.context("the turn did not start")?;
    Ok(turn)
}

/// Does the work that is owed until the turn has ended. What the model is to say and has not said yet
/// comes first; then it only takes its leave.
pub async fn finish(
    live: &mut LiveThread<'_>,
    says: Vec<ModelOutput>,
    grain: Grain,
    rng: &mut Rng,
    hears: &mut dyn AppendListener,
) -> Result<()> {
    let mut says = says.into_iter();
    let mut output = None;
    while live.ended.is_none() && live.thread().turn().is_some() {
        let effects = live.pending();
        let Some(effect) = effects.into_iter().next() else {
            bail!("the turn neither ends nor owes work");
        };
        let mut work = TurnWork {
            live: &mut *live,
            grain,
            rng: &mut *rng,
            listener: &mut *hears,
        };
        match effect {
            Effect::CallModel { call, .. } => {
                let said = match work.live.thread().purpose() {
                    Some(Purpose::Compact) => None,
                    _ => Some(says.next().unwrap_or_else(|| ModelOutput {
                        pieces: vec!["that is all".to_owned()],
                        ..ModelOutput::default()
                    })),
                };
                output = said.as_ref().and_then(|said| said.tool.clone());
                work.model(call, said).await?;
            }
            Effect::RunTool { item, .. } => {
                let output = output.take().unwrap_or_else(|| Output::text("done"));
                work.tool(item, output).await?;
            }
            Effect::BeginTurn { .. } => {
                bail!("a turn is to begin by itself, and none was asked for")
            }
            Effect::StopTool { item } => work.tool(item, Output::failure("stopped")).await?,
        }
        live.settle(hears).await?;
    }
    Ok(())
}

struct TurnWork<'w, 'a> {
    live: &'w mut LiveThread<'a>,
    grain: Grain,
    rng: &'w mut Rng,
    listener: &'w mut dyn AppendListener,
}

impl TurnWork<'_, '_> {
    async fn report(&mut self, command: Command) -> Result<()> {
        self.live.report(command)?;
        match self.grain {
            Grain::Fine => self.live.settle(&mut *self.listener).await,
            Grain::Coarse => Ok(()),
        }
    }

    async fn model(&mut self, call: u32, said: Option<ModelOutput>) -> Result<()> {
        let Some(said) = said else {
            let summary = self.rng.text(2000);
            let item = self.rng.id('c').as_str().into();
            let compact = Compact {
                call,
                item,
                summary,
            };
            self.report(Command::Compact(compact)).await?;
            return self.end(call).await;
        };
        if !said.pieces.is_empty() {
            self.message(call, said.pieces).await?;
        }
        if let Some(diff) = said.diff {
            self.report(Command::UpdateDiff(diff)).await?;
        }
        if said.tool.is_some() {
            let tool = CallTool {
                call,
                item: self.rng.id('i').as_str().into(),
                body: command(None),
                asked: ToolCall {
                    id: self.rng.id('c'),
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
        self.end(call).await
    }

    async fn message(&mut self, call: u32, pieces: Vec<String>) -> Result<()> {
        let item: raddle_core::ItemId = self.rng.id('i').as_str().into();
        let start = StartItem {
            call,
            item: item.clone(),
            body: ItemBody::AgentMessage(AgentMessage::default()),
        };
        self.report(Command::StartItem(Box::new(start))).await?;
        for text in pieces {
            let text = AppendText {
                item: item.clone(),
                part: ItemPart::Text,
                text,
            };
            self.report(Command::AppendText(text)).await?;
        }
        Ok(())
    }

    async fn end(&mut self, call: u32) -> Result<()> {
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

    async fn tool(&mut self, item: raddle_core::ItemId, output: Output) -> Result<()> {
        let end = EndTool {
            item,
            status: ItemStatus::Completed,
            body: if output.images.is_empty() {
                command(Some(0))
            } else {
                ItemBody::Tool(NamedTool {
                    name: "look".to_owned(),
                })
            },
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
        source: raddle_core::CommandSource::Agent,
        terminal: None,
        printed: None,
        exit_code,
        duration_ms: exit_code.map(|_| 12),
        time_ms_max: None,
    })
}
