//! Sign-ins that are under way, and who is told how they end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_protocol::{
    AccountLoginCompletedNotification, AccountUpdatedNotification, AuthMode, PlanType, ThreadId,
};
use tokio::sync::oneshot;

use super::providers::{self, KeySource, Provider};
use super::vendors::{PendingSignIn, SignInKind, Vendors};
use super::{ServerState, models};
use crate::session::Session;
use crate::wire_error::WireError;

/// How many sign-ins may be under way.
const LOGINS_MAX: usize = 16;

/// The sign-ins that are under way.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    logins: Mutex<HashMap<String, PendingLogin>>,
}

/// A sign-in that is under way. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PendingLogin {
    given_up: oneshot::Sender<()>,
    /// The port that a browser is sent back to, if its provider has to know it.
    port: Option<u16>,
    /// Resolves when nothing of it is left.
    over: oneshot::Receiver<()>,
}

/// What it takes to deal with a provider.
pub(crate) struct ProviderAccount {
    pub(crate) vendors: Arc<dyn Vendors>,
    pub(crate) provider: Provider,
}

impl ProviderAccount {
    /// The port that a browser is sent back to, if the provider has to know it.
    pub(crate) fn port(&self) -> Option<u16> {
        match &self.provider.key {
            KeySource::Stored(it) => it.oauth.as_ref()?.redirect_port,
            _ => None,
        }
    }

    /// For a provider by its name, else for the configured one.
    pub(crate) async fn of(rooms: &ServerState, name: Option<&str>) -> Result<Self, WireError> {
        let refused = |what: String| WireError::Refused(what.into());
        let state = rooms.config_now().await?;
        let file = rooms.config.user_file();
        let Some(name) = name.or_else(|| models::usual_provider(&state)) else {
            let file = file.display();
            return Err(refused(format!(
                "no model provider is configured; set `model_provider` in {file}"
            )));
        };
        let provider = providers::read(&state.merged, name, file);
        let provider = provider.map_err(|error| refused(error.to_string()))?;
        let vendors = rooms.options.vendors.clone();
        let vendors = vendors.ok_or_else(|| refused("nobody can sign in here".to_owned()))?;
        Ok(Self { vendors, provider })
    }
}

impl Accounts {
    fn logins(&self) -> MutexGuard<'_, HashMap<String, PendingLogin>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a sign-in that is given up; it ends when what is returned is dropped.
    pub(crate) fn take(&self, login: &str) -> Option<PendingLogin> {
        self.logins().remove(login)
    }

    /// Gives up whoever listens at a port that is wanted again, and waits until it is free. Whoever had begun there may
    /// be gone without a word.
    pub(crate) async fn free(&self, port: u16) {
        let found = {
            let mut logins = self.logins();
            let id = logins.iter().find(|(_, it)| it.port == Some(port));
            let id = id.map(|(id, _)| id.clone());
            id.and_then(|id| logins.remove(&id))
        };
        if let Some(PendingLogin { given_up, over, .. }) = found {
            drop(given_up);
            // It ends by being dropped.
            let _ = over.await;
        }
    }

    /// Names a sign-in that begins; nothing if too many are under way.
    pub(crate) fn begin(&self, port: Option<u16>) -> Option<Login> {
        let mut logins = self.logins();
        if logins.len() >= LOGINS_MAX {
            return None;
        }
        let id = ThreadId::mint().to_string();
        let (given_up, when_given_up) = oneshot::channel();
        let (lasts, over) = oneshot::channel();
        let under_way = PendingLogin {
            given_up,
            port,
            over,
        };
        logins.insert(id.clone(), under_way);
        Some(Login {
            id,
            when_given_up,
            lasts,
        })
    }
}

/// A sign-in that is under way.
pub(crate) struct Login {
    pub(crate) id: String,
    when_given_up: oneshot::Receiver<()>,
    /// Dropped when nothing of it is left.
    lasts: oneshot::Sender<()>,
}

impl Login {
    /// Waits for its end, and tells of it.
    pub(crate) async fn run(
        self,
        rooms: Arc<ServerState>,
        session: Arc<Session>,
        begun: PendingSignIn,
    ) {
        let ended = tokio::select! {
            ended = begun.done => ended,
            _ = self.when_given_up => Err("the sign-in was given up".to_owned()),
        };
        rooms.accounts.logins().remove(&self.id);
        completed(
            &rooms,
            &session,
            Some(self.id),
            ended.map(|()| SignInKind::Tokens),
        );
        drop(self.lasts);
    }
}

/// Tells who asked how a sign-in ended, and everyone if someone is signed in now.
pub(crate) fn completed(
    rooms: &ServerState,
    session: &Session,
    login_id: Option<String>,
    ended: Result<SignInKind, String>,
) {
    let completed = AccountLoginCompletedNotification {
        success: ended.is_ok(),
        error: ended.as_ref().err().cloned(),
        login_id,
        onboarding_entrypoint: None,
    };
    session.tell(&completed.into());
    if let Ok(how) = ended {
        updated(rooms, Some(how));
    }
}

/// Tells everyone how someone is signed in now.
pub(crate) fn updated(rooms: &ServerState, how: Option<SignInKind>) {
    let updated = AccountUpdatedNotification {
        auth_mode: how.map(|it| match it {
            SignInKind::Key => AuthMode::Apikey,
            SignInKind::Tokens => AuthMode::Chatgpt,
        }),
        plan_type: (how == Some(SignInKind::Tokens)).then_some(PlanType::Unknown),
    };
    rooms.threads.announce(updated.into());
}
