//! Turns, played with a scripted model and scripted tools.

use anyhow::{Context, Result, bail};
use raddle_core::{
    Admission, AgentMessage, AppendText, CallTool, Command, CommandRun, Compact, Effect, EndModel,
    EndTool, Input, InputMessage, ItemBody, ItemPart, ItemStatus, ItemUpdate, ModelEnd, NamedTool,
    Output, Purpose, StartTurn, ToolCall, TurnId, TurnKind, UpdateItem, Usage,
};
use support::Rng;

use crate::content::RandomContent;
use crate::live::{AppendListener, LiveThread};

/// Output of the model in one call.
#[derive(Clone, Debug, Default)]
pub struct ModelOutput {
    /// A message, piece by piece.
    pub pieces: Vec<String>,
    /// Output of a tool call that the model requests.
    pub tool: Option<Output>,
    /// Diff of the turn so far.
    pub diff: Option<String>,
}

/// How reports of work are batched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Each in its own round, so that there are many appends.
    Fine,
    /// As many together as possible.
    Coarse,
}

/// Plays a turn from its input to its end.
pub async fn play(
    live: &mut LiveThread<'_>,
    input: Vec<Input>,
    outputs: Vec<ModelOutput>,
    grain: Grain,
    rng: &mut Rng,
    listener: &mut dyn AppendListener,
) -> Result<TurnId> {
    let message = InputMessage {
        item: rng.id('u').as_str().into(),
        input,
        client_id: None,
        hook_prompt: None,
    };
    let turn = start(live, TurnKind::Work, Some(message), rng, listener).await?;
    finish(live, outputs, grain, rng, listener).await?;
    Ok(turn)
}

/// Plays a turn that compacts the history.
pub async fn compact(
    live: &mut LiveThread<'_>,
    rng: &mut Rng,
    listener: &mut dyn AppendListener,
) -> Result<()> {
    start(live, TurnKind::Compaction, None, rng, listener).await?;
    finish(live, Vec::new(), Grain::Coarse, rng, listener).await
}

async fn start(
    live: &mut LiveThread<'_>,
    kind: TurnKind,
    message: Option<InputMessage>,
    rng: &mut Rng,
    listener: &mut dyn AppendListener,
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
    let started = live.send_command(Command::StartTurn(Box::new(start)), listener);
    started.await?.context("the turn did not start")?;
    Ok(turn)
}

/// Does the pending work until the turn has ended. The model first sends the given outputs, then a
/// final message.
pub async fn finish(
    live: &mut LiveThread<'_>,
    outputs: Vec<ModelOutput>,
    grain: Grain,
    rng: &mut Rng,
    listener: &mut dyn AppendListener,
) -> Result<()> {
    let mut outputs = outputs.into_iter();
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
            listener: &mut *listener,
        };
        match effect {
            Effect::CallModel { call, .. } => {
                let model_output = match work.live.thread().purpose() {
                    Some(Purpose::Compact) => None,
                    _ => Some(outputs.next().unwrap_or_else(|| ModelOutput {
                        pieces: vec!["that is all".to_owned()],
                        ..ModelOutput::default()
                    })),
                };
                output = model_output
                    .as_ref()
                    .and_then(|model_output| model_output.tool.clone());
                work.model(call, model_output).await?;
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
        live.settle(listener).await?;
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

    async fn model(&mut self, call: u32, model_output: Option<ModelOutput>) -> Result<()> {
        let Some(model_output) = model_output else {
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
        if !model_output.pieces.is_empty() {
            self.message(call, model_output.pieces).await?;
        }
        if let Some(diff) = model_output.diff {
            self.report(Command::UpdateDiff(diff)).await?;
        }
        if model_output.tool.is_some() {
            let tool = CallTool {
                call,
                item: self.rng.id('i').as_str().into(),
                body: command(None),
                tool_call: ToolCall {
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
        let body = ItemBody::AgentMessage(AgentMessage::default());
        let update = ItemUpdate::Started(item.clone(), Box::new(body));
        self.report(Command::UpdateItem(UpdateItem { call, update }))
            .await?;
        for text in pieces {
            let update = ItemUpdate::Text(AppendText {
                item: item.clone(),
                part: ItemPart::Text,
                text,
            });
            self.report(Command::UpdateItem(UpdateItem { call, update }))
                .await?;
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
