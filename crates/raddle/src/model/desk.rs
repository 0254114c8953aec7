//! What the server wants of vendors outside turns.

use std::path::Path;

use raddle_core::ports::Waiting;
use raddle_model::{Client, Listed};
use raddle_sandbox::{Engine, Keeper};
use raddle_server::{
    KeySource, Offered, Provider, Secret, SignIn, SignedIn, SigningIn, Vendors, Way,
};

use super::credentials::Kept;
use super::keys::{self, Keys};
use super::outcome::CallFailed;
use super::{provider, sign_in};
use crate::rules::Rules;

/// Where vendors are dealt with: their keys, and the connections to them.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(super) keys: Keys,
    pub(super) client: Client,
}

impl Desk {
    /// That of a home. Nothing is read or asked yet. Without rules no command for a key is run.
    pub(crate) fn new(home: &Path, rules: Option<Rules>) -> Self {
        let client = Client::new();
        Self {
            keys: Keys::new(Engine::new(Keeper::own()), client.clone(), home, rules),
            client,
        }
    }

    async fn listed(&self, provider: &Provider) -> Result<Vec<Listed>, CallFailed> {
        let wire = provider::wire(provider)?;
        let key = self.keys.key(provider).await?;
        let endpoint = provider::endpoint(wire, provider, key.as_ref())?;
        let limits = provider::limits(provider);
        Ok(self.client.models(wire, &endpoint, limits).await?)
    }
}

impl Vendors for Desk {
    fn models<'a>(&'a self, provider: &'a Provider) -> Waiting<'a, Result<Vec<Offered>, String>> {
        Box::pin(async move {
            let listed = self.listed(provider).await;
            let listed = listed.map_err(|error| error.to_string())?.into_iter();
            let offered = listed.map(|Listed { id, name }| Offered { id, name });
            Ok(offered.collect())
        })
    }

    fn account<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> Waiting<'a, Result<Option<SignedIn>, String>> {
        Box::pin(async move {
            if !matches!(provider.key, KeySource::Stored(_)) {
                return Ok(None);
            }
            let kept = self.keys.kept(provider).await?;
            Ok(kept.map(|it| match it {
                Kept::Key { .. } => SignedIn::Key,
                Kept::Tokens { .. } => SignedIn::Tokens,
            }))
        })
    }

    fn renew<'a>(&'a self, provider: &'a Provider) -> Waiting<'a, Result<(), String>> {
        Box::pin(async move {
            let KeySource::Stored(SignIn {
                oauth: Some(oauth), ..
            }) = &provider.key
            else {
                return Ok(());
            };
            match self.keys.kept(provider).await? {
                Some(Kept::Tokens { access, .. }) => {
                    let renewed = self.keys.renewed(provider, oauth, &access);
                    renewed.await.map(drop).map_err(|error| error.to_string())
                }
                _ => Ok(()),
            }
        })
    }

    fn keep<'a>(&'a self, provider: &'a Provider, key: Secret) -> Waiting<'a, Result<(), String>> {
        Box::pin(async move {
            sign_in_of(provider)?;
            let key = key.0.trim().to_owned();
            if key.is_empty() {
                return Err("the key is empty".to_owned());
            }
            self.keys.keep(provider, Some(Kept::Key { key })).await
        })
    }

    fn sign_in<'a>(
        &'a self,
        provider: &'a Provider,
        way: Way,
    ) -> Waiting<'a, Result<SigningIn, String>> {
        Box::pin(async move {
            let name = &provider.name;
            let oauth = sign_in_of(provider)?.oauth.as_ref().ok_or_else(|| {
                format!("the model provider `{name}` has no pages to sign in; describe them under [model_providers.{name}.oauth], or sign in with a key")
            })?;
            let begun = match way {
                Way::Browser => sign_in::in_browser(&self.client, oauth).await?,
                Way::Device => sign_in::on_device(&self.client, oauth).await?,
            };
            let (keys, provider, oauth) = (self.keys.clone(), provider.clone(), oauth.clone());
            Ok(SigningIn {
                page: begun.page,
                code: begun.code,
                done: Box::pin(async move {
                    let given = begun.given.await?;
                    keys.keep(&provider, Some(keys::tokens(given, None, &oauth)))
                        .await
                }),
            })
        })
    }

    fn forget<'a>(&'a self, provider: &'a Provider) -> Waiting<'a, Result<(), String>> {
        Box::pin(async move { self.keys.keep(provider, None).await })
    }
}

/// How people sign in with a provider, if its key is theirs to give.
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
