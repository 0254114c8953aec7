//! Model calls of a plugin that answers a call, within the budgets of the thread.

use raddle_core::ports::{BoxFuture, Model, ModelAnswer, ModelEvent, Prompt};
use raddle_core::{
    AppendText, Command, ContextEntry, CountModelUse, Failure, Input, ItemId, ItemPart, ItemUpdate,
    Measure, MeteredUsage, ModelEnd, Price, Purpose, Scope, Settings, ThreadId, Usage,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::ToolGate;
use crate::estimate::UsageMeter;

/// Limit: text of a model's answer to a plugin; beyond it, the call fails.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// System instructions of a call without its own. Some vendors require a text.
const INSTRUCTIONS: &str = "Answer the request of a program.";

/// Reason why a plugin gets no answer of the model.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelCallError {
    #[error("the call has ended")]
    Stopped,
    #[error("the params are invalid: {0}")]
    Params(#[from] serde_json::Error),
    /// A budget is used up.
    #[error("{0}")]
    Budget(String),
    #[error("the answer is longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
    #[error("the model call failed: {0}")]
    Failed(String),
}

/// Params of `host/model_call`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelRequest {
    prompt: String,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    output_schema: Option<Value>,
}

/// Reads the budgets of a thread.
pub(crate) trait BudgetReader: Send + Sync {
    /// Returns the current state; `None` if the thread is being unloaded.
    fn read(&self) -> BoxFuture<'_, Option<BudgetState>>;
}

/// State of a thread's budgets.
pub(crate) struct BudgetState {
    /// Objection of the thread's own budgets to a model call.
    pub(crate) objection: Option<Failure>,
    /// Usage that counts towards the operator's budgets.
    pub(crate) used: Vec<(Scope, Measure, u64)>,
}

/// The thread as the model calls of one tool call need it.
pub(super) struct ModelCaller<'a> {
    pub(super) gate: &'a ToolGate,
    pub(super) model: &'a dyn Model,
    pub(super) budgets: &'a dyn BudgetReader,
    pub(super) thread: ThreadId,
    pub(super) item: &'a ItemId,
    pub(super) settings: &'a Settings,
    pub(super) reporter: &'a mpsc::Sender<Command>,
}

impl ModelCaller<'_> {
    /// Calls the model of the thread once, and counts its usage. Fails with the reason for the
    /// plugin.
    pub(super) async fn call(
        &self,
        arguments: &str,
        mut stopped: BoxFuture<'static, ()>,
    ) -> Result<Value, ModelCallError> {
        let request: ModelRequest = serde_json::from_str(arguments)?;
        let settings = Settings {
            // They are for the agent.
            developer_instructions: None,
            ..self.settings.clone()
        };
        let price = tokio::select! {
            biased;
            () = &mut stopped => return Err(ModelCallError::Stopped),
            price = self.price_within_budgets(&settings) => price?,
        };
        let instructions = request.instructions.filter(|it| !it.is_empty());
        let prompt = Prompt {
            thread: self.thread,
            settings,
            purpose: Purpose::Answer,
            instructions: instructions.unwrap_or_else(|| INSTRUCTIONS.to_owned()),
            attempt: 1,
            tools: Vec::new(),
            entries: vec![ContextEntry::User(vec![Input::text(request.prompt)]).into()],
            output_schema: request.output_schema,
        };
        let meter = UsageMeter::default();
        meter.begin(&prompt, price);
        let mut answer = self.model.call(prompt);
        let ended = tokio::select! {
            biased;
            () = &mut stopped => Err(ModelCallError::Stopped),
            ended = read_answer(&mut *answer, &meter) => ended,
        };
        drop(answer);
        let (text, usage, estimated) = match ended {
            Ok(AnswerEnd {
                text,
                usage,
                estimated,
            }) => (text, usage, estimated),
            // The vendor reports nothing for a call that is cut off.
            Err(why) => {
                let usage = meter.read().map(|MeteredUsage { usage, .. }| usage);
                (Err(why), usage, true)
            }
        };
        if let Some(usage) = usage {
            self.count(usage, estimated, price).await;
        }
        let usage = usage.unwrap_or_default();
        text.map(|text| {
            json!({
                "text": text,
                "usage": { "input_tokens": usage.input, "output_tokens": usage.output },
            })
        })
    }

    /// Checks the budgets of the thread and of the operator, and returns the price of the model.
    async fn price_within_budgets(
        &self,
        settings: &Settings,
    ) -> Result<Option<Price>, ModelCallError> {
        let price = self.model.price(settings).await;
        let limits = self.gate.managed_limits().await;
        let BudgetState { objection, used } =
            self.budgets.read().await.ok_or(ModelCallError::Stopped)?;
        let objection =
            objection.or_else(|| limits.call_objection(settings, price.as_ref(), &used));
        match objection {
            Some(failure) => Err(ModelCallError::Budget(failure.message)),
            None => Ok(price),
        }
    }

    async fn count(&self, usage: Usage, estimated: bool, price: Option<Price>) {
        let used = CountModelUse {
            item: self.item.clone(),
            model: self.settings.model.clone(),
            provider: self.settings.provider.clone(),
            usage,
            estimated,
            price,
        };
        // It is stored before the end of the tool, which is reported later.
        let _ = self
            .reporter
            .send(Command::CountModelUse(Box::new(used)))
            .await;
    }
}

/// The end of an answer.
struct AnswerEnd {
    /// Text of the answer, or why there is none.
    text: Result<String, ModelCallError>,
    usage: Option<Usage>,
    estimated: bool,
}

/// Reads an answer to its end. Fails if it is cut off.
async fn read_answer(
    answer: &mut dyn ModelAnswer,
    meter: &UsageMeter,
) -> Result<AnswerEnd, ModelCallError> {
    let mut text = String::new();
    loop {
        let mut event = answer.next().await;
        let estimated = meter.observe(&mut event);
        match event {
            ModelEvent::Item(ItemUpdate::Text(AppendText {
                part: ItemPart::Text,
                text: more,
                ..
            })) => {
                text.push_str(&more);
                if text.len() > ANSWER_BYTES_MAX {
                    return Err(ModelCallError::TooLong);
                }
            }
            ModelEvent::Item(_) | ModelEvent::Tool(..) => {}
            ModelEvent::Ended(end, usage) => {
                let failed = |why: String| Err(ModelCallError::Failed(why));
                let text = match end {
                    ModelEnd::Done {} => Ok(text),
                    ModelEnd::Broke { error, .. }
                    | ModelEnd::Rerouted { error, .. }
                    | ModelEnd::Overflowed { error }
                    | ModelEnd::Failed { error } => failed(error.message),
                    ModelEnd::Cancelled {} | ModelEnd::OwnerLost {} => {
                        failed("cancelled".to_owned())
                    }
                };
                return Ok(AnswerEnd {
                    text,
                    usage,
                    estimated,
                });
            }
        }
    }
}
