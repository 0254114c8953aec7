//! Ties the agent to the models that the configuration names.

mod outcome;
mod provider;
mod request;
mod said;

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_core::ports::{Answer, Model, Prompt, Said, Waiting};
use raddle_core::{ItemId, ModelEnd};
use raddle_model::{Client, Stream};
use raddle_server::{Provider, Providers};

use self::outcome::{CallFailed, Tries};

/// The models of the configured providers.
#[derive(Debug)]
pub(crate) struct Configured {
    providers: Providers,
    client: Client,
}

impl Configured {
    pub(crate) fn new(providers: Providers) -> Self {
        Self {
            providers,
            client: Client::new(),
        }
    }
}

impl Model for Configured {
    fn call(&self, prompt: Prompt) -> Box<dyn Answer> {
        Box::new(Answering {
            tries: Tries::of(prompt.attempt),
            state: State::Asked(Box::new(Asked {
                providers: self.providers.clone(),
                client: self.client.clone(),
                prompt,
            })),
            ids: BTreeMap::new(),
            vendor: Arc::default(),
        })
    }
}

/// An answer on its way.
struct Answering {
    tries: Tries,
    state: State,
    /// Our ids for the vendor's items: a vendor may use one again in its next answer.
    ids: BTreeMap<Arc<str>, ItemId>,
    /// Whose sealed items these are.
    vendor: Arc<str>,
}

enum State {
    Asked(Box<Asked>),
    Streaming(Box<Stream>),
    Over,
}

/// What is asked of whom.
struct Asked {
    providers: Providers,
    client: Client,
    prompt: Prompt,
}

impl Answer for Answering {
    fn next(&mut self) -> Waiting<'_, Said> {
        Box::pin(async move {
            match self.advance().await {
                Ok(said) => said,
                Err(error) => {
                    self.state = State::Over;
                    Said::Ended(self.tries.ended(&error), None)
                }
            }
        })
    }
}

impl Answering {
    async fn advance(&mut self) -> Result<Said, CallFailed> {
        loop {
            match &mut self.state {
                State::Asked(asked) => {
                    let provider = asked.provider().await?;
                    self.tries.limit(&provider);
                    self.vendor = provider::vendor(&provider).into();
                    let stream = asked.begin(&provider, &self.vendor).await?;
                    self.state = State::Streaming(Box::new(stream));
                }
                State::Streaming(stream) => match stream.next().await? {
                    Some(event) => return Ok(said::said(event, &mut self.ids, &self.vendor)),
                    None => self.state = State::Over,
                },
                State::Over => return Ok(Said::Ended(ModelEnd::Done {}, None)),
            }
        }
    }
}

impl Asked {
    async fn provider(&self) -> Result<Provider, CallFailed> {
        let name = self.prompt.settings.provider.clone();
        let found = match self.providers.at_hand(name.as_deref()) {
            Some(found) => found,
            None => {
                let providers = self.providers.clone();
                tokio::task::spawn_blocking(move || providers.get(name.as_deref()))
                    .await
                    .map_err(|error| CallFailed::NotConfigured(error.to_string()))?
            }
        };
        found.map_err(|error| CallFailed::NotConfigured(error.to_string()))
    }

    async fn begin(&self, provider: &Provider, vendor: &Arc<str>) -> Result<Stream, CallFailed> {
        let model = self.prompt.settings.model.clone().ok_or_else(|| {
            let what = "no model is configured; set `model` in config.toml";
            CallFailed::NotConfigured(what.to_owned())
        })?;
        let endpoint = provider::endpoint(provider)?;
        let request = request::request(&self.prompt, model, vendor)?;
        let limits = provider::limits(provider);
        Ok(self.client.responses(&endpoint, &request, limits).await?)
    }
}
