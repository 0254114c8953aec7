//! `account/login/start`: sign in with a provider, with a key or through its pages.

use std::sync::Arc;

use raddle_config::{Secret, SignInKind, SignInMethod};
use raddle_protocol::methods::AccountLoginStart;
use raddle_protocol::{
    ChatgptDeviceCodeLoginAccountResponse, ChatgptLoginAccountResponse, LoginAccountParams,
    LoginAccountResponse,
};

use crate::call::{Call, Reply};
use crate::services::ServerState;
use crate::services::accounts::{self, ProviderAccount};
use crate::session::Session;
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<AccountLoginStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    match params {
        LoginAccountParams::ApiKey(it) => {
            let stored = store_key(&state, it.model_provider.as_deref(), Secret(it.api_key)).await;
            let is_stored = stored.is_ok();
            reply.finish(stored.map(|()| LoginAccountResponse::ApiKey));
            if is_stored {
                accounts::completed(&state, &session, None, Ok(SignInKind::Key));
            }
        }
        LoginAccountParams::Chatgpt(it) => {
            let provider = it.model_provider.as_deref();
            through_pages(state, session, reply, provider, SignInMethod::Browser).await;
        }
        LoginAccountParams::ChatgptDeviceCode => {
            through_pages(state, session, reply, None, SignInMethod::Device).await;
        }
        _ => reply.error(WireError::Refused(
            "unsupported sign-in type; use apiKey, chatgpt or chatgptDeviceCode".into(),
        )),
    }
}

async fn store_key(
    state: &ServerState,
    provider: Option<&str>,
    key: Secret,
) -> Result<(), WireError> {
    let account = ProviderAccount::of(state, provider).await?;
    let stored = account.vendors.store_key(&account.provider, key).await;
    stored.map_err(|why| WireError::Refused(why.to_string().into()))
}

async fn through_pages(
    state: Arc<ServerState>,
    session: Arc<Session>,
    reply: Reply<LoginAccountResponse>,
    provider: Option<&str>,
    method: SignInMethod,
) {
    let account = match ProviderAccount::of(&state, provider).await {
        Ok(account) => account,
        Err(error) => return reply.error(error),
    };
    let port = account.port().filter(|_| method == SignInMethod::Browser);
    if let Some(port) = port {
        state.accounts.free(port).await;
    }
    let Some(login) = state.accounts.begin(port) else {
        let what = "too many sign-ins are in progress; cancel one with account/login/cancel";
        return reply.error(WireError::Refused(what.into()));
    };
    let pending = match account.vendors.sign_in(&account.provider, method).await {
        Ok(pending) => pending,
        Err(why) => {
            state.accounts.take(&login.id);
            return reply.error(WireError::Refused(why.to_string().into()));
        }
    };
    let login_id = login.id.clone();
    reply.ok(&match &pending.code {
        Some(code) => {
            LoginAccountResponse::ChatgptDeviceCode(ChatgptDeviceCodeLoginAccountResponse {
                login_id,
                user_code: code.clone(),
                verification_url: pending.page.clone(),
            })
        }
        None => LoginAccountResponse::Chatgpt(ChatgptLoginAccountResponse {
            auth_url: pending.page.clone(),
            login_id,
        }),
    });
    login.run(state, session, pending).await;
}
