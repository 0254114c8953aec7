//! Sign-ins that are under way, and who is told how they end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_protocol::{
    AccountLoginCompletedNotification, AccountUpdatedNotification, AuthMode, PlanType, ThreadId,
};
use tokio::sync::oneshot;

use super::providers::{self, Provider};
use super::vendors::{SignedIn, SigningIn, Vendors};
use super::{Rooms, models};
use crate::session::Session;
use crate::wire_error::WireError;

/// How many sign-ins may be under way.
const LOGINS_MAX: usize = 16;

/// The sign-ins that are under way; each ends when its sender is dropped.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    logins: Mutex<HashMap<String, oneshot::Sender<()>>>,
}

/// What it takes to deal with a provider.
pub(crate) struct Desk {
    pub(crate) vendors: Arc<dyn Vendors>,
    pub(crate) provider: Provider,
}

impl Desk {
    /// For a provider by its name, else for the configured one.
    pub(crate) async fn of(rooms: &Rooms, name: Option<&str>) -> Result<Self, WireError> {
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
    fn logins(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a sign-in that is given up; it ends when what is returned is dropped.
    pub(crate) fn take(&self, login: &str) -> Option<oneshot::Sender<()>> {
        self.logins().remove(login)
    }

    /// Names a sign-in that begins; nothing if too many are under way.
    pub(crate) fn begin(&self) -> Option<Login> {
        let mut logins = self.logins();
        if logins.len() >= LOGINS_MAX {
            return None;
        }
        let id = ThreadId::mint().to_string();
        let (given_up, when_given_up) = oneshot::channel();
        logins.insert(id.clone(), given_up);
        Some(Login { id, when_given_up })
    }
}

/// A sign-in that is under way.
pub(crate) struct Login {
    pub(crate) id: String,
    when_given_up: oneshot::Receiver<()>,
}

impl Login {
    /// Waits for its end, and tells of it.
    pub(crate) async fn run(self, rooms: Arc<Rooms>, session: Arc<Session>, begun: SigningIn) {
        let ended = tokio::select! {
            ended = begun.done => ended,
            _ = self.when_given_up => Err("the sign-in was given up".to_owned()),
        };
        rooms.accounts.logins().remove(&self.id);
        completed(
            &rooms,
            &session,
            Some(self.id),
            ended.map(|()| SignedIn::Tokens),
        );
    }
}

/// Tells who asked how a sign-in ended, and everyone if someone is signed in now.
pub(crate) fn completed(
    rooms: &Rooms,
    session: &Session,
    login_id: Option<String>,
    ended: Result<SignedIn, String>,
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
pub(crate) fn updated(rooms: &Rooms, how: Option<SignedIn>) {
    let updated = AccountUpdatedNotification {
        auth_mode: how.map(|it| match it {
            SignedIn::Key => AuthMode::Apikey,
            SignedIn::Tokens => AuthMode::Chatgpt,
        }),
        plan_type: (how == Some(SignedIn::Tokens)).then_some(PlanType::Unknown),
    };
    rooms.threads.announce(updated.into());
}
