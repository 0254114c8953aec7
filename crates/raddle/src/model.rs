//! Ties the agent to the models that the configuration names.

#[cfg(test)]
mod answers;
mod credentials;
mod desk;
mod keys;
mod outcome;
mod provider;
mod question;
mod request;
mod said;
mod sign_in;

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_core::ports::{Answer, Model, Prompt, Said, Waiting};
use raddle_core::{ItemId, ModelEnd, Price, Settings};
use raddle_model::{CallError, Client, Endpoint, Fault, Stream, Wire};
use raddle_server::{Chosen, Providers};

pub(crate) use self::desk::Desk;
use self::keys::Keys;
use self::outcome::{CallFailed, Tries};

/// The models of the configured providers.
#[derive(Debug)]
pub(crate) struct Configured {
    providers: Providers,
    keys: Keys,
    client: Client,
}

impl Configured {
    pub(crate) fn new(providers: Providers, desk: &Desk) -> Self {
        Self {
            providers,
            keys: desk.keys.clone(),
            client: desk.client.clone(),
        }
    }
}

impl Model for Configured {
    fn price<'a>(&'a self, settings: &'a Settings) -> Waiting<'a, Option<Price>> {
        let (provider, model) = (settings.provider.as_deref(), settings.model.as_deref());
        Box::pin(self.providers.price(provider, model))
    }

    fn call(&self, prompt: Prompt) -> Box<dyn Answer> {
        Box::new(Answering {
            tries: Tries::of(prompt.attempt),
            state: State::Asked(Box::new(Asked {
                providers: self.providers.clone(),
                keys: self.keys.clone(),
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
    keys: Keys,
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
                    let chosen = asked.chosen().await?;
                    self.tries.limit(&chosen.provider);
                    let wire = provider::wire(&chosen.provider)?;
                    self.vendor = provider::vendor(wire, &chosen.provider).into();
                    let stream = asked.begin(wire, &chosen, &self.vendor).await?;
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
    async fn chosen(&self) -> Result<Chosen, CallFailed> {
        let settings = &self.prompt.settings;
        let (provider, model) = (settings.provider.as_deref(), settings.model.as_deref());
        let found = match self.providers.choose_at_hand(provider, model) {
            Some(found) => found,
            None => {
                let providers = self.providers.clone();
                let (provider, model) = (settings.provider.clone(), settings.model.clone());
                let choose = move || providers.choose(provider.as_deref(), model.as_deref());
                tokio::task::spawn_blocking(choose)
                    .await
                    .map_err(|error| CallFailed::NotConfigured(error.to_string()))?
            }
        };
        found.map_err(|error| CallFailed::NotConfigured(error.to_string()))
    }

    /// Puts the question. If the key is refused, it is got anew once.
    async fn begin(
        &self,
        wire: Wire,
        chosen: &Chosen,
        vendor: &Arc<str>,
    ) -> Result<Stream, CallFailed> {
        let provider = &chosen.provider;
        self.keys
            .works_in(raddle_tools::workspaces(&self.prompt.settings));
        let key = self.keys.key(provider).await?;
        let endpoint = provider::endpoint(wire, provider, key.as_ref())?;
        let error = match self.put(wire, chosen, &endpoint, vendor).await {
            Err(CallFailed::Call(error)) if is_refused(&error) => error,
            outcome => return outcome,
        };
        let another = match &key {
            Some(key) => self.keys.another(provider, key).await,
            None => Ok(None),
        };
        let key = match another {
            Ok(Some(key)) => key,
            Ok(None) => return Err(error.into()),
            Err(why) => return Err(with_reason(error, &why).into()),
        };
        let endpoint = provider::endpoint(wire, provider, Some(&key))?;
        self.put(wire, chosen, &endpoint, vendor).await
    }

    async fn put(
        &self,
        wire: Wire,
        Chosen { provider, model }: &Chosen,
        endpoint: &Endpoint,
        vendor: &Arc<str>,
    ) -> Result<Stream, CallFailed> {
        let limits = provider::limits(provider);
        let (client, prompt) = (&self.client, &self.prompt);
        let question = || question::question(prompt, provider, model, vendor);
        Ok(match wire {
            Wire::Responses => {
                let request = request::request(prompt, model.clone(), vendor)?;
                client.responses(endpoint, &request, limits).await?
            }
            Wire::Chat => client.chat(endpoint, &question(), limits).await?,
            Wire::Messages => client.messages(endpoint, &question(), limits).await?,
            Wire::Gemini => client.gemini(endpoint, &question(), limits).await?,
        })
    }
}

/// A refusal, and why there is no other key to try.
fn with_reason(mut error: CallError, why: &CallFailed) -> CallError {
    if let CallError::Vendor(error) = &mut error {
        error.message = format!("{}; {why}", error.message);
    }
    error
}

/// Whether it was the key that the vendor did not take. Whom it knows and does not let in, another key does not help.
fn is_refused(error: &CallError) -> bool {
    match error {
        CallError::Vendor(error) => {
            error.fault == Fault::Unauthorized && error.status.is_some_and(|it| it != 403)
        }
        _ => false,
    }
}
