//! The model providers of plugins beside all others, behind the same port.

mod events;
mod request;

use std::sync::Arc;
use std::time::Duration;

use raddle_config::Providers;
use raddle_core::ports::{BoxFuture, Model, ModelAnswer, ModelEvent, Prompt};
use raddle_core::{Failure, FailureKind, ModelEnd, Price, Settings, Usage};
use serde_json::Value;
use tokio::time::timeout;

use self::events::{AnswerEvents, EventError};
use super::answer_channel::{self, AnswerReceiver};
use super::events::EventReceiver;
use super::instance::{PluginCall, PluginToolError};
use super::registry::{OfferedPlugin, PluginRegistry};

/// Limit: time of a model call of a plugin; beyond it, the call fails.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3600);

/// Limit: time in which a model provider of a plugin sends nothing; beyond it, the call fails.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// The models of plugins, and all others.
#[derive(Clone)]
pub struct PluginModels {
    others: Arc<dyn Model>,
    providers: Providers,
    registry: PluginRegistry,
}

impl PluginModels {
    /// Adds the models of plugins to others.
    pub fn new(others: Arc<dyn Model>, providers: Providers, registry: PluginRegistry) -> Self {
        Self {
            others,
            providers,
            registry,
        }
    }

    /// Chooses the provider of a prompt.
    async fn route(&self, prompt: Prompt) -> AnswerState {
        let (provider, model) = {
            let settings = &prompt.settings;
            let (provider, model) = (settings.provider.as_deref(), settings.model.as_deref());
            self.providers.names(provider, model).await
        };
        let registry = &self.registry;
        // Its files may have changed since the turn began.
        if provider
            .as_deref()
            .is_some_and(|it| registry.by_id(it).is_some())
        {
            registry.refresh().await;
        }
        let plugin = provider.and_then(|it| registry.model_provider(&it));
        match plugin {
            None => AnswerState::Other(self.others.call(prompt)),
            Some((plugin, method)) => {
                let writable = registry.writable(prompt.settings.clone()).await;
                let arguments = request::params(&prompt, model.as_deref().unwrap_or_default());
                let (sender, incoming) = answer_channel::channel();
                let call = PluginCall {
                    method,
                    arguments,
                    user: None,
                    acts: None,
                    limit: ANSWER_TIMEOUT,
                    answer: Some(sender),
                    events: EventReceiver::without_clients(prompt.thread),
                    // Dropping the answer abandons the call.
                    stopped: Box::pin(std::future::pending()),
                    writable,
                };
                AnswerState::Plugin(Box::new(PluginAnswer::new(plugin, call, incoming)))
            }
        }
    }
}

impl Model for PluginModels {
    fn call(&self, prompt: Prompt) -> Box<dyn ModelAnswer> {
        // The turn has read the installed plugins when it began.
        match self.registry.is_empty() {
            true => self.others.call(prompt),
            false => Box::new(RoutedAnswer {
                models: self.clone(),
                state: AnswerState::Requested(Box::new(prompt)),
            }),
        }
    }

    fn price<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Option<Price>> {
        self.others.price(settings)
    }
}

/// An answer whose provider is chosen when its first event is requested.
struct RoutedAnswer {
    models: PluginModels,
    state: AnswerState,
}

enum AnswerState {
    Requested(Box<Prompt>),
    Other(Box<dyn ModelAnswer>),
    Plugin(Box<PluginAnswer>),
    Done,
}

/// Reason why a plugin has no answer.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error("the model provider sent nothing for {} s", IDLE_TIMEOUT.as_secs())]
    Silent,
    #[error("the model provider sends faster than its answer is stored; send less at a time")]
    CutOff,
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Call(#[from] PluginToolError),
}

impl ModelAnswer for RoutedAnswer {
    fn next(&mut self) -> BoxFuture<'_, ModelEvent> {
        Box::pin(async move {
            loop {
                match &mut self.state {
                    AnswerState::Requested(_) => {
                        let state = std::mem::replace(&mut self.state, AnswerState::Done);
                        if let AnswerState::Requested(prompt) = state {
                            self.state = self.models.route(*prompt).await;
                        }
                    }
                    AnswerState::Other(answer) => return answer.next().await,
                    AnswerState::Plugin(answer) => return answer.next().await,
                    AnswerState::Done => return ModelEvent::Ended(ModelEnd::Done {}, None),
                }
            }
        })
    }
}

/// An answer of a plugin in progress.
struct PluginAnswer {
    events: AnswerEvents,
    incoming: AnswerReceiver,
    call: BoxFuture<'static, Result<Value, PluginToolError>>,
    /// Usage of the complete answer.
    end: Option<Option<Usage>>,
}

impl PluginAnswer {
    fn new(plugin: Arc<OfferedPlugin>, call: PluginCall, incoming: AnswerReceiver) -> Self {
        Self {
            events: AnswerEvents::default(),
            incoming,
            call: Box::pin(async move { plugin.instance.call(call).await }),
            end: None,
        }
    }

    async fn next(&mut self) -> ModelEvent {
        loop {
            if let Some(event) = self.events.take() {
                return event;
            }
            if let Some(usage) = self.end.take() {
                return ModelEvent::Ended(ModelEnd::Done {}, usage);
            }
            if let Err(error) = self.advance().await {
                let error = Failure::new(FailureKind::VendorFailed, error.to_string());
                return ModelEvent::Ended(ModelEnd::Failed { error }, None);
            }
        }
    }

    /// Waits for the next event of the plugin, or for the end of the call.
    async fn advance(&mut self) -> Result<(), AnswerError> {
        let step = async {
            tokio::select! {
                biased;
                Some(event) = self.incoming.next() => Ok(Err(event)),
                outcome = &mut self.call => outcome.map(Ok),
            }
        };
        let step = timeout(IDLE_TIMEOUT, step).await;
        let step = step.map_err(|_| AnswerError::Silent)??;
        if self.incoming.is_cut_off() {
            return Err(AnswerError::CutOff);
        }
        match step {
            Err(event) => self.events.add(event)?,
            Ok(result) => {
                // They were sent before the response.
                while let Some(event) = self.incoming.ready() {
                    self.events.add(event)?;
                }
                self.end = Some(self.events.end(result));
            }
        }
        Ok(())
    }
}
