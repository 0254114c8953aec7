//! Requests to vendors outside turns: model lists and accounts.

use std::path::Path;
use std::sync::Arc;

use raddle_config::{
    KeySource, OfferedModel, PendingSignIn, Provider, Secret, SignIn, SignInKind, SignInMethod,
    VendorRequestError, Vendors,
};
use raddle_core::ports::{BoxFuture, Rulebook};
use raddle_model::{ListedModel, ModelClient};
use raddle_sandbox::{KeeperCommand, Launcher};

use super::built_in_mock::BuiltInMock;
use super::credentials::StoredCredential;
use super::keys::{self, Keys, OperatorRules};
use super::outcome::{CallFailure, full_text};
use super::{provider, sign_in};

/// The keys of vendors, and the connections to them.
#[derive(Debug)]
pub struct VendorClient {
    pub(crate) keys: Keys,
    pub(crate) client: ModelClient,
    pub(crate) mock: BuiltInMock,
}

impl VendorClient {
    /// Creates the client of a home. Reads and requests nothing yet. Without rules no key command
    /// is run.
    pub fn new(home: &Path, rules: Option<Arc<dyn Rulebook>>) -> Self {
        let client = ModelClient::new();
        Self {
            keys: Keys::new(
                Launcher::new(KeeperCommand::own()),
                client.clone(),
                home,
                rules.map(OperatorRules),
            ),
            client,
            mock: BuiltInMock::default(),
        }
    }

    async fn listed(&self, provider: &Provider) -> Result<Vec<ListedModel>, CallFailure> {
        let wire = provider::wire(provider)?;
        let key = self.keys.key(provider).await?;
        let endpoint = provider::endpoint(wire, provider, key.as_ref())?;
        let limits = provider::limits(provider);
        let client = self.mock.client_for(provider).unwrap_or(&self.client);
        Ok(client.models(wire, &endpoint, limits).await?)
    }
}

impl Vendors for VendorClient {
    fn models<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Vec<OfferedModel>, VendorRequestError>> {
        Box::pin(async move {
            let listed = self.listed(provider).await;
            let listed = listed.map_err(|error| error.to_string())?.into_iter();
            let offered = listed.map(|ListedModel { id, name }| OfferedModel { id, name });
            Ok(offered.collect())
        })
    }

    fn account<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Option<SignInKind>, VendorRequestError>> {
        Box::pin(async move {
            if !matches!(provider.key, KeySource::Stored(_)) {
                return Ok(None);
            }
            let credential = self.keys.stored_credential(provider).await;
            let credential = credential.map_err(|error| full_text(&error))?;
            Ok(credential.map(|it| match it {
                StoredCredential::Key { .. } => SignInKind::Key,
                StoredCredential::Tokens { .. } => SignInKind::Tokens,
            }))
        })
    }

    fn renew<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<(), VendorRequestError>> {
        Box::pin(async move {
            let KeySource::Stored(SignIn {
                oauth: Some(oauth), ..
            }) = &provider.key
            else {
                return Ok(());
            };
            let credential = self.keys.stored_credential(provider).await;
            match credential.map_err(|error| full_text(&error))? {
                Some(StoredCredential::Tokens { access, .. }) => {
                    let renewed = self.keys.renewed(provider, oauth, &access);
                    renewed.await.map_err(|error| error.to_string())?;
                    Ok(())
                }
                _ => Ok(()),
            }
        })
    }

    fn store_key<'a>(
        &'a self,
        provider: &'a Provider,
        key: Secret,
    ) -> BoxFuture<'a, Result<(), VendorRequestError>> {
        Box::pin(async move {
            sign_in_of(provider)?;
            let key = key.0.trim().to_owned();
            if key.is_empty() {
                return Err(VendorRequestError::new("the key is empty"));
            }
            self.keys
                .store_credential(provider, Some(StoredCredential::Key { key }))
                .await
                .map_err(|error| full_text(&error))?;
            Ok(())
        })
    }

    fn sign_in<'a>(
        &'a self,
        provider: &'a Provider,
        method: SignInMethod,
    ) -> BoxFuture<'a, Result<PendingSignIn, VendorRequestError>> {
        Box::pin(async move {
            let name = &provider.name;
            let oauth = sign_in_of(provider)?.oauth.as_ref().ok_or_else(|| {
                format!("the model provider `{name}` has no pages to sign in; describe them under [model_providers.{name}.oauth], or sign in with a key")
            })?;
            let started = match method {
                SignInMethod::Browser => sign_in::in_browser(&self.client, oauth).await,
                SignInMethod::Device => sign_in::on_device(&self.client, oauth).await,
            };
            let started = started.map_err(|error| full_text(&error))?;
            let (keys, provider, oauth) = (self.keys.clone(), provider.clone(), oauth.clone());
            Ok(PendingSignIn {
                page: started.page,
                code: started.code,
                done: Box::pin(async move {
                    let tokens = started.tokens.await;
                    let tokens = tokens.map_err(|error| full_text(&error))?;
                    let tokens = Some(keys::tokens(tokens, None, &oauth));
                    let stored = keys.store_credential(&provider, tokens).await;
                    stored.map_err(|error| full_text(&error))?;
                    Ok(())
                }),
            })
        })
    }

    fn forget<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<bool, VendorRequestError>> {
        Box::pin(async move {
            let removed = self.keys.store_credential(provider, None).await;
            Ok(removed.map_err(|error| full_text(&error))?)
        })
    }
}

/// Returns the provider's sign-in, or an error if its key comes from elsewhere.
fn sign_in_of(provider: &Provider) -> Result<&SignIn, String> {
    let name = &provider.name;
    match &provider.key {
        KeySource::Stored(sign_in) => Ok(sign_in),
        KeySource::None => Err(format!(
            "the model provider `{name}` takes no key; if it should, set requires_openai_auth = true under [model_providers.{name}]"
        )),
        _ => Err(format!(
            "the configuration says where the key of `{name}` is; remove that under [model_providers.{name}] to sign in"
        )),
    }
}
