//! The access tokens of a server, renewed once for all threads and processes.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use raddle_config::clock::now_s;
use raddle_model::ModelClient;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::super::http::{HttpError, TokenSource, parse_url};
use super::error::OauthError;
use super::fetcher::Fetcher;
use super::grant;
use super::store::{ServerCredential, TokenStore};

/// The remaining lifetime at which a token is renewed.
const MARGIN: Duration = Duration::from_secs(60);

/// How long others may take to renew a token, and the interval of the checks.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(120);
const RENEWAL_INTERVAL: Duration = Duration::from_millis(50);

/// The stored tokens of one server. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ServerTokens {
    name: Arc<str>,
    url: Arc<str>,
    store: TokenStore,
    client: ModelClient,
    /// Held while the token is renewed, so that only one thread polls the lock of the home.
    renewing: Arc<Mutex<()>>,
}

impl ServerTokens {
    /// Returns the tokens of a server in a home.
    pub(crate) fn new(home: &Path, name: &str, url: &str, client: ModelClient) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            store: TokenStore::of(home),
            client,
            renewing: Arc::default(),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn client(&self) -> &ModelClient {
        &self.client
    }

    /// Returns whether a user is logged in.
    pub(crate) async fn is_logged_in(&self) -> Result<bool, OauthError> {
        Ok(self.stored().await?.is_some())
    }

    /// Removes the tokens. Returns whether there were any.
    pub(crate) async fn log_out(&self) -> Result<bool, OauthError> {
        self.on_disk(|it| it.store.set(&it.name, None)).await
    }

    /// Stores the tokens of a login.
    pub(super) async fn store(&self, credential: ServerCredential) -> Result<(), OauthError> {
        let stored = self.on_disk(move |it| it.store.set(&it.name, Some(credential)));
        stored.await.map(|_| ())
    }

    async fn stored(&self) -> Result<Option<ServerCredential>, OauthError> {
        self.on_disk(|it| it.store.get(&it.name, &it.url)).await
    }

    /// Returns the access token for a request; `None` if a user must log in.
    async fn current(&self, rejected: Option<&str>) -> Result<Option<String>, OauthError> {
        let Some(credential) = self.stored().await? else {
            return Ok(None);
        };
        let is_rejected = rejected == Some(&*credential.access);
        let is_unusable = is_rejected || ends_within(Duration::ZERO, credential.expires_at);
        if !is_unusable && !ends_within(MARGIN, credential.expires_at) {
            return Ok(Some(credential.access));
        }
        match self.renewed(credential.access.clone()).await {
            Ok(None) | Err(_) if !is_unusable => Ok(Some(credential.access)),
            renewed => renewed,
        }
    }

    /// Renews a token. Concurrent callers, here or in another process, get the same new token.
    async fn renewed(&self, stale: String) -> Result<Option<String>, OauthError> {
        let here = self.renewing.clone().lock_owned().await;
        let tokens = self.clone();
        // The caller may be cancelled. The new token must be stored even then, since the old one is
        // already invalid.
        let renewing = tokio::spawn(async move {
            let _here = here;
            let _elsewhere = tokens.renewal_lock().await?;
            tokens.renew(&stale).await
        });
        renewing.await?
    }

    /// Waits until no other holder renews the token.
    async fn renewal_lock(&self) -> Result<File, OauthError> {
        let deadline = Instant::now() + RENEWAL_TIMEOUT;
        loop {
            let lock = self.on_disk(|it| it.store.renewal_lock(&it.name)).await?;
            if let Some(lock) = lock {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                let server = self.name.to_string();
                return Err(OauthError::LockTimeout { server });
            }
            sleep(RENEWAL_INTERVAL).await;
        }
    }

    async fn renew(&self, stale: &str) -> Result<Option<String>, OauthError> {
        let credential = match self.stored().await? {
            Some(stored) if stored.access == stale => stored,
            // Another holder of the lock has renewed it, or the user has logged out.
            stored => return Ok(stored.map(|it| it.access)),
        };
        let Some(refresh) = credential.refresh.clone() else {
            return Ok(None);
        };
        let mut form = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", &*refresh),
        ];
        if let Some(resource) = &credential.resource {
            form.push(("resource", resource));
        }
        let fetcher = Fetcher::new(&parse_url(&self.url)?, &self.client).await;
        let (url, client) = (&credential.token_url, &credential.client);
        let new = match grant::request_tokens(&fetcher, url, client, &form).await {
            Ok(issued) => Some(ServerCredential {
                access: issued.access,
                // Without a new refresh token the old one stays in use.
                refresh: issued.refresh.or_else(|| Some(refresh.clone())),
                expires_at: expiry(issued.expires_in),
                ..credential.clone()
            }),
            Err(error) if error.is_transient() => return Err(error),
            // The tokens are of no use any more. Removing them spares others the attempt.
            Err(error) => {
                tracing::warn!(server = %self.name, "the login has ended: {error}");
                None
            }
        };
        // The user may have logged out meanwhile, or in again; that takes precedence.
        let stored = self.on_disk(move |it| it.store.replace(&it.name, &credential, new));
        Ok(stored.await?.map(|it| it.access))
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, OauthError> + Send + 'static,
    ) -> Result<T, OauthError> {
        let tokens = self.clone();
        tokio::task::spawn_blocking(move || work(&tokens)).await?
    }
}

impl TokenSource for ServerTokens {
    fn token<'a>(
        &'a self,
        rejected: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, HttpError>> {
        Box::pin(async move {
            let token = self.current(rejected).await;
            token.map_err(|error| HttpError::Token(error.to_string()))
        })
    }
}

/// Returns the expiry of a token with this lifetime, in seconds since 1970.
pub(super) fn expiry(expires_in: Option<u64>) -> Option<u64> {
    expires_in.map(|it| now_s().saturating_add(it))
}

fn ends_within(time: Duration, expires_at: Option<u64>) -> bool {
    expires_at.is_some_and(|it| it <= now_s().saturating_add(time.as_secs()))
}
