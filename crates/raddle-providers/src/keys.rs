//! The keys of providers, fetched when a call needs them.

mod command;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use raddle_config::clock::now_s;
use raddle_config::{KeyCommand, KeySource, OAuth, Provider, SignIn};
use raddle_model::{ModelClient, oauth};
use raddle_sandbox::Launcher;
use rustix::fs::OFlags;
use tokio::time::{Instant, sleep};

use self::command::Bounds;
pub(crate) use self::command::OperatorRules;
use super::credentials::{CredentialError, Credentials, StoredCredential, TokenIssuer};
use super::outcome::{CallFailure, full_text};

/// The remaining lifetime at which a token is renewed.
const MARGIN: Duration = Duration::from_secs(60);

/// How long another process may take to renew a token, and the interval of the checks.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(120);
const RENEWAL_INTERVAL: Duration = Duration::from_millis(50);

/// Limit: a model's key, and the output of a command that prints one; beyond it, the call fails.
const KEY_BYTES_MAX: usize = 64 << 10;

/// A key. `Debug` does not show it.
#[derive(Clone)]
pub(crate) struct ApiKey {
    text: Arc<str>,
    /// Increases with each key that is fetched.
    number: u64,
}

impl ApiKey {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.number)
    }
}

/// The keys, cached for later calls. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    launcher: Launcher,
    client: ModelClient,
    pub(crate) credentials: Credentials,
    counter: Arc<AtomicU64>,
    commands: Arc<Mutex<HashMap<KeyCommand, Slot>>>,
    /// Held while a token is renewed.
    renewing: Arc<tokio::sync::Mutex<()>>,
    /// The operator's rules for commands.
    rules: Option<OperatorRules>,
    /// Workspaces of threads, and folders that their commands may write.
    workspaces: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// The output of a command. Concurrent calls wait here while the command runs.
type Slot = Arc<tokio::sync::Mutex<Option<(ApiKey, Instant)>>>;

impl Keys {
    /// Returns the keys of a home. Without rules no command is run.
    pub(crate) fn new(
        launcher: Launcher,
        client: ModelClient,
        home: &Path,
        rules: Option<OperatorRules>,
    ) -> Self {
        let here = std::env::current_dir().ok();
        // Starting in the user's home folder does not make it a workspace.
        let user = std::env::home_dir();
        let here = here.filter(|it| user.is_none_or(|user| !user.starts_with(it)));
        Self {
            launcher,
            client,
            credentials: Credentials::of(home),
            counter: Arc::default(),
            commands: Arc::default(),
            renewing: Arc::default(),
            rules,
            workspaces: Arc::new(Mutex::new(here.into_iter().collect())),
        }
    }

    /// Records the workspaces of a thread. Key commands may not come from there, for any thread.
    pub(crate) fn add_workspaces(&self, folders: Vec<PathBuf>) {
        let mut workspaces = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        workspaces.extend(folders);
    }

    fn bounds(&self) -> Bounds {
        let workspaces = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Bounds {
            rules: self.rules.clone(),
            workspaces: workspaces.iter().cloned().collect(),
        }
    }

    /// Returns the key for a call; `None` if the provider takes none.
    pub(crate) async fn key(&self, provider: &Provider) -> Result<Option<ApiKey>, CallFailure> {
        self.get(provider, None).await
    }

    /// Returns the key to try after this one was rejected; `None` if there is no other. A command
    /// runs once and a token is renewed once, however many calls were rejected.
    pub(crate) async fn replacement(
        &self,
        provider: &Provider,
        refused: &ApiKey,
    ) -> Result<Option<ApiKey>, CallFailure> {
        let key = self.get(provider, Some(refused)).await?;
        Ok(key.filter(|it| it.text != refused.text))
    }

    async fn get(
        &self,
        provider: &Provider,
        refused: Option<&ApiKey>,
    ) -> Result<Option<ApiKey>, CallFailure> {
        let key = match &provider.key {
            KeySource::None => return Ok(None),
            KeySource::Stored(sign_in) => {
                let key = self.stored(provider, sign_in, refused).await?;
                return Ok(Some(key));
            }
            KeySource::Command(command) => self.of_command(command, refused).await,
            KeySource::Inline(secret) => self.make_key(&secret.0, "the configuration"),
            KeySource::Environment {
                variable,
                instructions,
            } => {
                let text = of_environment(variable, instructions.as_deref());
                text.and_then(|it| self.make_key(&it, variable))
            }
            KeySource::File(path) => self.of_file(path).await,
        };
        key.map(Some).map_err(CallFailure::NoKey)
    }

    async fn of_file(&self, path: &Path) -> Result<ApiKey, String> {
        let shown = path.display().to_string();
        let path = path.to_owned();
        let read = on_disk(move || Ok(read_key(&path))).await;
        let read = read.map_err(|error| full_text(&error))?;
        let wrong = |error| {
            format!(
                "the key cannot be read from {shown}: {error}; write the key into that file, or correct key_file"
            )
        };
        self.make_key(&read.map_err(wrong)?, &shown)
    }

    /// Validates a key and numbers it. Editors and programs append a line end.
    fn make_key(&self, text: &str, location: &str) -> Result<ApiKey, String> {
        let text = text.trim();
        let what = match text.len() {
            0 => "no key",
            bytes if bytes > KEY_BYTES_MAX => "too much for a key",
            _ => {
                return Ok(ApiKey {
                    text: text.into(),
                    number: self.counter.fetch_add(1, Ordering::Relaxed),
                });
            }
        };
        Err(format!("there is {what} in {location}; put the key there"))
    }

    async fn of_command(
        &self,
        command: &KeyCommand,
        refused: Option<&ApiKey>,
    ) -> Result<ApiKey, String> {
        let slot = {
            let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
            commands.entry(command.clone()).or_default().clone()
        };
        let mut slot = slot.lock().await;
        if let Some((key, fetched_at)) = &*slot
            && fetched_at.elapsed() < command::key_ttl(command)
            && refused.is_none_or(|it| it.number < key.number)
        {
            return Ok(key.clone());
        }
        let written = command::output_of(&self.launcher, command, self.bounds()).await;
        let written = written.map_err(|error| full_text(&error))?;
        let location = format!("what `{}` writes", command.program);
        let key = self.make_key(&written, &location)?;
        *slot = Some((key.clone(), Instant::now()));
        Ok(key)
    }

    /// Returns the stored credential; without one, the key of the environment.
    async fn stored(
        &self,
        provider: &Provider,
        sign_in: &SignIn,
        refused: Option<&ApiKey>,
    ) -> Result<ApiKey, CallFailure> {
        let location = "the stored credential";
        let credential = self.stored_credential(provider).await?;
        let key = match (credential, &sign_in.variable) {
            (Some(StoredCredential::Key { key }), _) => self.make_key(&key, location),
            (
                Some(StoredCredential::Tokens {
                    access, expires_at, ..
                }),
                _,
            ) => {
                let is_refused = refused.is_some_and(|it| *it.text == *access);
                let access = match &sign_in.oauth {
                    Some(oauth) if is_refused || ends_within(MARGIN, expires_at) => {
                        match self.renewed(provider, oauth, &access).await {
                            Err(error) if is_refused || ends_within(Duration::ZERO, expires_at) => {
                                return Err(error);
                            }
                            renewed => renewed.unwrap_or(access),
                        }
                    }
                    _ => access,
                };
                self.make_key(&access, location)
            }
            (None, Some(variable)) => {
                let how = format!("or run `raddle login {}`", provider.name);
                let text = of_environment(variable, Some(&how));
                text.and_then(|it| self.make_key(&it, variable))
            }
            (None, None) => Err(format!(
                "no user is signed in with `{0}`; run `raddle login {0}`",
                provider.name
            )),
        };
        key.map_err(CallFailure::NoKey)
    }

    /// Returns the credential stored for a provider.
    pub(crate) async fn stored_credential(
        &self,
        provider: &Provider,
    ) -> Result<Option<StoredCredential>, CredentialError> {
        let (credentials, provider) = (self.credentials.clone(), provider.clone());
        on_disk(move || credentials.get(&provider)).await
    }

    /// Stores the credential of a provider, or removes it. Returns whether there was one.
    pub(crate) async fn store_credential(
        &self,
        provider: &Provider,
        credential: Option<StoredCredential>,
    ) -> Result<bool, CredentialError> {
        let (credentials, provider) = (self.credentials.clone(), provider.clone());
        on_disk(move || credentials.set(&provider, credential)).await
    }

    /// Renews an expired token. Concurrent callers, here or in another process, get the same new
    /// token.
    pub(crate) async fn renewed(
        &self,
        provider: &Provider,
        oauth: &OAuth,
        stale: &str,
    ) -> Result<String, CallFailure> {
        let here = self.renewing.clone().lock_owned().await;
        let (keys, provider) = (self.clone(), provider.clone());
        let (oauth, stale) = (oauth.clone(), stale.to_owned());
        // The caller may be cancelled. The new token must be stored even then, since the old one is
        // already invalid.
        let renewing = tokio::spawn(async move {
            let _here = here;
            let elsewhere = keys.renewal_lock(RENEWAL_TIMEOUT).await;
            let _elsewhere = elsewhere.map_err(CallFailure::NoKey)?;
            keys.renew(&provider, &oauth, &stale).await
        });
        let renewed = renewing.await;
        renewed.unwrap_or_else(|error| Err(CallFailure::NoKey(error.to_string())))
    }

    /// Waits until no other process renews a token.
    async fn renewal_lock(&self, timeout: Duration) -> Result<File, String> {
        let deadline = Instant::now() + timeout;
        loop {
            let credentials = self.credentials.clone();
            let lock = on_disk(move || credentials.renewing()).await;
            if let Some(lock) = lock.map_err(|error| full_text(&error))? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                return Err(
                    "another process has been renewing a token for too long; end it".to_owned(),
                );
            }
            sleep(RENEWAL_INTERVAL).await;
        }
    }

    async fn renew(
        &self,
        provider: &Provider,
        oauth: &OAuth,
        stale: &str,
    ) -> Result<String, CallFailure> {
        let over = |what: &str| {
            CallFailure::NoKey(format!("{what}; run `raddle login {}`", provider.name))
        };
        let signed_out = || over("no user is signed in any more");
        let credential = self.stored_credential(provider).await?;
        let credential = credential.ok_or_else(signed_out)?;
        let refresh = match &credential {
            StoredCredential::Tokens {
                access, refresh, ..
            } if access == stale => refresh.clone(),
            other => return Ok(other.text().to_owned()),
        };
        let refresh = refresh.ok_or_else(|| over("the sign-in has expired"))?;
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &refresh),
            ("client_id", &oauth.client_id),
        ];
        let response = self.client.tokens(&oauth.token_url, &form).await;
        let issued = response.map_err(|error| match error.is_transient() {
            true => CallFailure::NotRenewed(error),
            false => over(&format!("cannot renew the token: {error}")),
        })?;
        // The user may have signed out meanwhile, or in again; that takes precedence.
        let renewed = tokens(issued, Some(refresh), oauth);
        let (credentials, provider) = (self.credentials.clone(), provider.clone());
        let stored = on_disk(move || credentials.replace(&provider, &credential, renewed)).await?;
        Ok(stored.ok_or_else(signed_out)?.text().to_owned())
    }
}

/// Converts tokens for storage. Without a new refresh token the old one stays in use.
pub(crate) fn tokens(
    issued: oauth::OauthTokens,
    refresh: Option<String>,
    oauth: &OAuth,
) -> StoredCredential {
    StoredCredential::Tokens {
        access: issued.access,
        refresh: issued.refresh.or(refresh),
        expires_at: issued.expires_in.map(|it| now_s().saturating_add(it)),
        giver: Some(TokenIssuer::of(oauth)),
    }
}

fn ends_within(time: Duration, expires_at: Option<u64>) -> bool {
    expires_at.is_some_and(|it| it <= now_s().saturating_add(time.as_secs()))
}

/// Reads a key file. It may be in a folder that a model can write, so only a regular file of
/// limited size is read: a pipe or a device may never end.
fn read_key(path: &Path) -> io::Result<String> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let mut text = String::new();
    let most = KEY_BYTES_MAX as u64;
    match file.take(most + 1).read_to_string(&mut text)? {
        read if read > KEY_BYTES_MAX => Err(io::Error::other("it is too long for a key")),
        _ => Ok(text),
    }
}

async fn on_disk<T, F>(work: F) -> Result<T, CredentialError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, CredentialError> + Send + 'static,
{
    tokio::task::spawn_blocking(work).await?
}

fn of_environment(variable: &str, instructions: Option<&str>) -> Result<String, String> {
    let value = std::env::var(variable).ok();
    value.filter(|it| !it.trim().is_empty()).ok_or_else(|| {
        let what = format!(
            "the environment variable {variable} is not set; set it to the key where the server is started"
        );
        match instructions {
            Some(how) => format!("{what}, {how}"),
            None => what,
        }
    })
}

#[cfg(test)]
mod tests;
