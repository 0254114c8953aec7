//! `account/login/start`: sign in with a provider, with a key or through its pages.

use std::sync::Arc;

use raddle_protocol::methods::AccountLoginStart;
use raddle_protocol::{
    ChatgptDeviceCodeLoginAccountResponse, ChatgptLoginAccountResponse, LoginAccountParams,
    LoginAccountResponse,
};

use crate::call::{Call, Reply};
use crate::services::ServerState;
use crate::services::accounts::{self, ProviderAccount};
use crate::services::providers::Secret;
use crate::services::vendors::{SignInKind, SignInMethod};
use crate::session::Session;
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<AccountLoginStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let rooms = rooms.clone();
    tokio::spawn(async move {
        match params {
            LoginAccountParams::ApiKey(it) => {
                let kept = keep(&rooms, it.model_provider.as_deref(), Secret(it.api_key)).await;
                let is_kept = kept.is_ok();
                reply.finish(kept.map(|()| LoginAccountResponse::ApiKey));
                if is_kept {
                    accounts::completed(&rooms, &session, None, Ok(SignInKind::Key));
                }
            }
            LoginAccountParams::Chatgpt(it) => {
                let provider = it.model_provider.as_deref();
                through_pages(rooms, session, reply, provider, SignInMethod::Browser).await;
            }
            LoginAccountParams::ChatgptDeviceCode => {
                through_pages(rooms, session, reply, None, SignInMethod::Device).await;
            }
            _ => reply.error(WireError::Refused(
                "this way to sign in is one vendor's own; use apiKey, chatgpt or chatgptDeviceCode"
                    .into(),
            )),
        }
    });
}

async fn keep(rooms: &ServerState, provider: Option<&str>, key: Secret) -> Result<(), WireError> {
    let desk = ProviderAccount::of(rooms, provider).await?;
    let kept = desk.vendors.keep(&desk.provider, key).await;
    kept.map_err(|why| WireError::Refused(why.into()))
}

async fn through_pages(
    rooms: Arc<ServerState>,
    session: Arc<Session>,
    reply: Reply<LoginAccountResponse>,
    provider: Option<&str>,
    way: SignInMethod,
) {
    let desk = match ProviderAccount::of(&rooms, provider).await {
        Ok(desk) => desk,
        Err(error) => return reply.error(error),
    };
    let port = desk.port().filter(|_| way == SignInMethod::Browser);
    if let Some(port) = port {
        rooms.accounts.free(port).await;
    }
    let Some(login) = rooms.accounts.begin(port) else {
        let what = "too many sign-ins are under way; end one with account/login/cancel";
        return reply.error(WireError::Refused(what.into()));
    };
    let begun = match desk.vendors.sign_in(&desk.provider, way).await {
        Ok(begun) => begun,
        Err(why) => {
            rooms.accounts.take(&login.id);
            return reply.error(WireError::Refused(why.into()));
        }
    };
    let login_id = login.id.clone();
    reply.ok(&match &begun.code {
        Some(code) => {
            LoginAccountResponse::ChatgptDeviceCode(ChatgptDeviceCodeLoginAccountResponse {
                login_id,
                user_code: code.clone(),
                verification_url: begun.page.clone(),
            })
        }
        None => LoginAccountResponse::Chatgpt(ChatgptLoginAccountResponse {
            auth_url: begun.page.clone(),
            login_id,
        }),
    });
    login.run(rooms, session, begun).await;
}
