//! Signs in through a provider's pages, until it issues tokens.

use std::io;
use std::time::Duration;

use raddle_config::OAuth;
use raddle_core::ports::BoxFuture;
use raddle_model::oauth::{self, OauthTokens, PkcePair, RedirectError, RedirectListener};
use raddle_model::{CallError, ModelClient};
use tokio::time::timeout;

/// The timeout for a device code, even if the provider gives it a longer lifetime.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Reason why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    #[error("`{key}` is not set under `oauth`; set it, or sign in another way")]
    NotConfigured { key: &'static str },
    #[error("cannot begin to sign in")]
    DeviceCode(#[source] CallError),
    #[error("the code was not entered in time")]
    CodeTimedOut,
    #[error("cannot listen for the browser")]
    Listen(#[source] io::Error),
    #[error(transparent)]
    Redirect(#[from] RedirectError),
    /// The vendor issued no tokens, or the system has no randomness.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A sign-in that has started.
pub(crate) struct StartedSignIn {
    pub(crate) page: String,
    pub(crate) code: Option<String>,
    pub(crate) tokens: BoxFuture<'static, Result<OauthTokens, SignInError>>,
}

/// Signs in with a code that the user can enter on any device.
pub(crate) async fn on_device(
    client: &ModelClient,
    oauth: &OAuth,
) -> Result<StartedSignIn, SignInError> {
    let url = needed(oauth.device_url.as_deref(), "device_url")?;
    let scopes = oauth.scopes.join(" ");
    let form = [("client_id", &*oauth.client_id), ("scope", &scopes)];
    let code = client.device_code(url, &form).await;
    let code = code.map_err(SignInError::DeviceCode)?;
    let (client, oauth) = (client.clone(), oauth.clone());
    Ok(StartedSignIn {
        page: code.verification_uri.clone(),
        code: Some(code.user_code.clone()),
        tokens: Box::pin(async move {
            let good = good_for(code.expires_in);
            let tokens = client.tokens_of_device(&oauth.token_url, &oauth.client_id, &code);
            match timeout(good, tokens).await {
                Ok(tokens) => Ok(tokens?),
                Err(_) => Err(SignInError::CodeTimedOut),
            }
        }),
    })
}

fn good_for(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(DEVICE_TIMEOUT)
}

/// Signs in with a browser on this machine, which is redirected to a local port.
pub(crate) async fn in_browser(
    client: &ModelClient,
    oauth: &OAuth,
) -> Result<StartedSignIn, SignInError> {
    let url = needed(oauth.authorize_url.as_deref(), "authorize_url")?;
    let proof = PkcePair::new()?;
    let state = oauth::random_token()?;
    let port = oauth.redirect_port.unwrap_or(0);
    let listener = RedirectListener::bind(port).await;
    let listener = listener.map_err(SignInError::Listen)?;
    let redirect_uri = listener.uri().to_owned();
    let scopes = oauth.scopes.join(" ");
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", &oauth.client_id),
        ("redirect_uri", &redirect_uri),
        ("code_challenge", &proof.challenge),
        ("code_challenge_method", "S256"),
        ("state", &state),
    ];
    if !scopes.is_empty() {
        query.push(("scope", &scopes));
    }
    let page = oauth::address(url, &query);
    let (client, oauth) = (client.clone(), oauth.clone());
    Ok(StartedSignIn {
        page,
        code: None,
        tokens: Box::pin(async move {
            let code = listener.answer(&state).await?.code;
            let form = [
                ("grant_type", "authorization_code"),
                ("code", &*code),
                ("redirect_uri", &redirect_uri),
                ("client_id", &oauth.client_id),
                ("code_verifier", &proof.verifier),
            ];
            Ok(client.tokens(&oauth.token_url, &form).await?)
        }),
    })
}

fn needed<'a>(url: Option<&'a str>, key: &'static str) -> Result<&'a str, SignInError> {
    url.ok_or(SignInError::NotConfigured { key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_waited_for_as_long_as_it_is_good_but_not_for_ever() {
        for (seconds, expected) in [(60, 60), (900, 900), (901, 900), (u64::MAX, 900)] {
            assert_eq!(good_for(seconds), Duration::from_secs(expected));
        }
    }
}
