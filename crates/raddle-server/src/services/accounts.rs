//! Sign-ins in progress, and the notifications about their end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_config::{
    KeySource, PendingSignIn, Provider, SignInKind, State, VendorRequestError, Vendors, models,
    providers,
};
use raddle_protocol::{
    AccountLoginCompletedNotification, AccountUpdatedNotification, AuthMode, PlanType, ThreadId,
};
use tokio::sync::oneshot;

use super::ServerState;
use crate::session::Session;
use crate::wire_error::WireError;

/// Limit: logins in progress; beyond it, the server rejects the request with -32600.
const LOGINS_MAX: usize = 16;

/// The sign-ins in progress.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    logins: Mutex<HashMap<String, PendingLogin>>,
}

/// A sign-in in progress. Dropping this cancels it.
#[derive(Debug)]
pub(crate) struct PendingLogin {
    cancel: oneshot::Sender<()>,
    /// The redirect port of the browser flow, if its provider requires a fixed one.
    port: Option<u16>,
    /// Resolves when the sign-in has ended completely.
    ended: oneshot::Receiver<()>,
}

/// A provider, and the client for its vendor.
pub(crate) struct ProviderAccount {
    pub(crate) vendors: Arc<dyn Vendors>,
    pub(crate) provider: Provider,
}

impl ProviderAccount {
    /// Returns the redirect port of the browser flow, if the provider requires a fixed one.
    pub(crate) fn port(&self) -> Option<u16> {
        match &self.provider.key {
            KeySource::Stored(it) => it.oauth.as_ref()?.redirect_port,
            _ => None,
        }
    }

    /// Returns the account of a named provider, or else of the configured one.
    pub(crate) async fn of(server: &ServerState, name: Option<&str>) -> Result<Self, WireError> {
        let state = server.config_now().await?;
        Self::configured(server, &state, name)
    }

    /// Returns the account of a named provider, or else of the default one, by this configuration.
    pub(crate) fn configured(
        server: &ServerState,
        state: &State,
        name: Option<&str>,
    ) -> Result<Self, WireError> {
        let refused = |what: String| WireError::Refused(what.into());
        let file = server.config.user_file();
        let Some(name) = name.or_else(|| models::default_provider(state)) else {
            let file = file.display();
            return Err(refused(format!(
                "no model provider is configured; set `model_provider` in {file}"
            )));
        };
        let provider = providers::read(state.table(), name, file);
        let provider = provider.map_err(|error| refused(error.to_string()))?;
        let vendors = server.options.vendors.clone();
        let vendors =
            vendors.ok_or_else(|| refused("this server does not support sign-in".to_owned()))?;
        Ok(Self { vendors, provider })
    }
}

impl Accounts {
    fn logins(&self) -> MutexGuard<'_, HashMap<String, PendingLogin>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a sign-in. Dropping the result cancels it.
    pub(crate) fn take(&self, login: &str) -> Option<PendingLogin> {
        self.logins().remove(login)
    }

    /// Cancels the sign-in that listens on this port, and waits until the port is free. The client
    /// that began it may be gone without notice.
    pub(crate) async fn free(&self, port: u16) {
        let conflicting = {
            let mut logins = self.logins();
            let id = logins.iter().find(|(_, it)| it.port == Some(port));
            let id = id.map(|(id, _)| id.clone());
            id.and_then(|id| logins.remove(&id))
        };
        if let Some(PendingLogin { cancel, ended, .. }) = conflicting {
            drop(cancel);
            // It ends by being dropped.
            let _ = ended.await;
        }
    }

    /// Registers a new sign-in; none if too many are in progress.
    pub(crate) fn begin(&self, port: Option<u16>) -> Option<Login> {
        let mut logins = self.logins();
        if logins.len() >= LOGINS_MAX {
            return None;
        }
        let id = ThreadId::mint().to_string();
        let (cancel, cancelled) = oneshot::channel();
        let (running, ended) = oneshot::channel();
        let pending = PendingLogin {
            cancel,
            port,
            ended,
        };
        logins.insert(id.clone(), pending);
        Some(Login {
            id,
            cancelled,
            running,
        })
    }
}

/// Reason why a sign-in ended without success.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    #[error("the sign-in was cancelled")]
    Cancelled,
    /// The provider rejected it, or did not respond.
    #[error(transparent)]
    Vendor(#[from] VendorRequestError),
}

/// The running half of a sign-in.
pub(crate) struct Login {
    pub(crate) id: String,
    cancelled: oneshot::Receiver<()>,
    /// Dropped when the sign-in has ended completely.
    running: oneshot::Sender<()>,
}

impl Login {
    /// Waits for the end of the sign-in, and reports it.
    pub(crate) async fn run(
        self,
        state: Arc<ServerState>,
        session: Arc<Session>,
        sign_in: PendingSignIn,
    ) {
        let outcome = tokio::select! {
            outcome = sign_in.done => outcome.map_err(SignInError::Vendor),
            _ = self.cancelled => Err(SignInError::Cancelled),
        };
        state.accounts.logins().remove(&self.id);
        completed(
            &state,
            &session,
            Some(self.id),
            outcome.map(|()| SignInKind::Tokens),
        );
        drop(self.running);
    }
}

/// Notifies the client of the end of its sign-in, and all clients if the account changed.
pub(crate) fn completed(
    state: &ServerState,
    session: &Session,
    login_id: Option<String>,
    outcome: Result<SignInKind, SignInError>,
) {
    let completed = AccountLoginCompletedNotification {
        success: outcome.is_ok(),
        error: outcome.as_ref().err().map(ToString::to_string),
        login_id,
        onboarding_entrypoint: None,
    };
    session.notify(&completed.into());
    if let Ok(kind) = outcome {
        updated(state, Some(kind));
    }
}

/// Notifies all clients of the account in use.
pub(crate) fn updated(state: &ServerState, kind: Option<SignInKind>) {
    let updated = AccountUpdatedNotification {
        auth_mode: kind.map(|it| match it {
            SignInKind::Key => AuthMode::Apikey,
            SignInKind::Tokens => AuthMode::Chatgpt,
        }),
        plan_type: (kind == Some(SignInKind::Tokens)).then_some(PlanType::Unknown),
    };
    state.threads.announce(updated.into());
}
