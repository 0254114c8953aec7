//! The configured model providers, behind the ports of the core and of the configuration.
//!
//! [`ConfiguredModels`] implements the agent's `Model`: it chooses the provider of a thread,
//! fetches its key, translates the prompt to the provider's wire, and maps failures to retries.
//! [`VendorClient`] implements `Vendors`: lists of models, and sign-in.
//!
//! The crate holds the keys. It writes no wire itself: that is `raddle-model`.
//!
//! Below: `raddle-config`, `raddle-core`, `raddle-model`, `raddle-sandbox` and `raddle-tools`.
//! Above: `raddle`, which hands them to the agent and the server.

#[cfg(test)]
mod answers;
mod built_in_mock;
mod credentials;
mod keys;
mod model_event;
mod outcome;
mod provider;
mod question;
mod request;
mod sign_in;
mod vendor_client;

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_config::{ProviderChoice, Providers};
use raddle_core::ports::{BoxFuture, Model, ModelAnswer, ModelEvent, Prompt};
use raddle_core::{ItemId, ModelEnd, Price, Settings};
use raddle_model::{AnswerStream, CallError, Endpoint, ModelClient, VendorFault, WireFormat};

use self::built_in_mock::BuiltInMock;
use self::keys::Keys;
use self::outcome::{Attempts, CallFailure};
pub use self::vendor_client::VendorClient;

/// The models of the configured providers.
#[derive(Debug)]
pub struct ConfiguredModels {
    providers: Providers,
    keys: Keys,
    client: ModelClient,
    mock: BuiltInMock,
}

impl ConfiguredModels {
    /// Creates the models. They share the keys and connections of the vendor client.
    pub fn new(providers: Providers, vendor_client: &VendorClient) -> Self {
        Self {
            providers,
            keys: vendor_client.keys.clone(),
            client: vendor_client.client.clone(),
            mock: vendor_client.mock.clone(),
        }
    }
}

impl Model for ConfiguredModels {
    fn price<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Option<Price>> {
        let (provider, model) = (settings.provider.as_deref(), settings.model.as_deref());
        Box::pin(self.providers.price(provider, model))
    }

    fn call(&self, prompt: Prompt) -> Box<dyn ModelAnswer> {
        Box::new(VendorAnswer {
            tries: Attempts::of(prompt.attempt),
            state: State::Requested(Box::new(VendorRequest {
                providers: self.providers.clone(),
                keys: self.keys.clone(),
                client: self.client.clone(),
                mock: self.mock.clone(),
                prompt,
            })),
            ids: BTreeMap::new(),
            vendor: Arc::default(),
        })
    }
}

/// An answer in progress.
struct VendorAnswer {
    tries: Attempts,
    state: State,
    /// Our ids for the vendor's items: a vendor may reuse an id in its next answer.
    ids: BTreeMap<Arc<str>, ItemId>,
    /// The vendor that can read the sealed items of this answer.
    vendor: Arc<str>,
}

enum State {
    Requested(Box<VendorRequest>),
    Streaming(Box<AnswerStream>),
    Done,
}

/// A request that is not sent yet.
struct VendorRequest {
    providers: Providers,
    keys: Keys,
    client: ModelClient,
    mock: BuiltInMock,
    prompt: Prompt,
}

impl ModelAnswer for VendorAnswer {
    fn next(&mut self) -> BoxFuture<'_, ModelEvent> {
        Box::pin(async move {
            match self.advance().await {
                Ok(event) => event,
                Err(error) => {
                    self.state = State::Done;
                    ModelEvent::Ended(self.tries.ended(&error), None)
                }
            }
        })
    }
}

impl VendorAnswer {
    async fn advance(&mut self) -> Result<ModelEvent, CallFailure> {
        loop {
            match &mut self.state {
                State::Requested(request) => {
                    let chosen = request.chosen().await?;
                    self.tries.limit(&chosen.provider);
                    let wire = provider::wire(&chosen.provider)?;
                    self.vendor = provider::vendor(wire, &chosen.provider).into();
                    let stream = request.begin(wire, &chosen, &self.vendor).await?;
                    self.state = State::Streaming(Box::new(stream));
                }
                State::Streaming(stream) => match stream.next().await? {
                    Some(event) => {
                        return Ok(model_event::model_event(event, &mut self.ids, &self.vendor));
                    }
                    None => self.state = State::Done,
                },
                State::Done => return Ok(ModelEvent::Ended(ModelEnd::Done {}, None)),
            }
        }
    }
}

impl VendorRequest {
    async fn chosen(&self) -> Result<ProviderChoice, CallFailure> {
        let settings = &self.prompt.settings;
        let (provider, model) = (settings.provider.as_deref(), settings.model.as_deref());
        let choice = match self.providers.choose_without_blocking(provider, model) {
            Some(choice) => choice,
            None => {
                let providers = self.providers.clone();
                let (provider, model) = (settings.provider.clone(), settings.model.clone());
                let choose = move || providers.choose(provider.as_deref(), model.as_deref());
                tokio::task::spawn_blocking(choose)
                    .await
                    .map_err(|error| CallFailure::NotConfigured(error.to_string()))?
            }
        };
        choice.map_err(|error| CallFailure::NotConfigured(error.to_string()))
    }

    /// Sends the request. If the vendor rejects the key, retries once with a new one.
    async fn begin(
        &self,
        wire: WireFormat,
        chosen: &ProviderChoice,
        vendor: &Arc<str>,
    ) -> Result<AnswerStream, CallFailure> {
        let provider = &chosen.provider;
        self.keys
            .add_workspaces(raddle_tools::workspaces(&self.prompt.settings));
        let key = self.keys.key(provider).await?;
        let endpoint = provider::endpoint(wire, provider, key.as_ref())?;
        let error = match self.send(wire, chosen, &endpoint, vendor).await {
            Err(CallFailure::Call(error)) if is_refused(&error) => error,
            outcome => return outcome,
        };
        let another = match &key {
            Some(key) => self.keys.replacement(provider, key).await,
            None => Ok(None),
        };
        let key = match another {
            Ok(Some(key)) => key,
            Ok(None) => return Err(error.into()),
            Err(why) => return Err(with_reason(error, &why).into()),
        };
        let endpoint = provider::endpoint(wire, provider, Some(&key))?;
        self.send(wire, chosen, &endpoint, vendor).await
    }

    async fn send(
        &self,
        wire: WireFormat,
        ProviderChoice { provider, model }: &ProviderChoice,
        endpoint: &Endpoint,
        vendor: &Arc<str>,
    ) -> Result<AnswerStream, CallFailure> {
        let limits = provider::limits(provider);
        let client = self.mock.client_for(provider).unwrap_or(&self.client);
        let prompt = &self.prompt;
        let question = || question::question(prompt, provider, model, vendor);
        Ok(match wire {
            WireFormat::Responses => {
                let request = request::request(prompt, model.clone(), vendor)?;
                client.responses(endpoint, &request, limits).await?
            }
            WireFormat::Chat => client.chat(endpoint, &question(), limits).await?,
            WireFormat::Messages => client.messages(endpoint, &question(), limits).await?,
            WireFormat::Gemini => client.gemini(endpoint, &question(), limits).await?,
        })
    }
}

/// Adds to a rejection why there is no other key to try.
fn with_reason(mut error: CallError, why: &CallFailure) -> CallError {
    if let CallError::Vendor(error) = &mut error {
        error.message = format!("{}; {why}", error.message);
    }
    error
}

/// Whether the vendor rejected the key. A 403 means a known key without access, where another key
/// does not help.
fn is_refused(error: &CallError) -> bool {
    match error {
        CallError::Vendor(error) => {
            error.fault == VendorFault::Unauthorized && error.status.is_some_and(|it| it != 403)
        }
        _ => false,
    }
}
