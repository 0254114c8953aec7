//! `account/read`: how the user is signed in with the configured provider. Most providers need no
//! sign-in: the configuration names the source of their key.

use std::sync::Arc;

use raddle_config::{KeySource, SignInKind};
use raddle_protocol::methods::AccountRead;
use raddle_protocol::{Account, ChatgptAccount, GetAccountResponse, PlanType};
use tracing::Instrument;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::accounts::ProviderAccount;
use crate::wire_error::WireError;

pub(crate) fn handle(server: &Arc<ServerState>, call: Call<AccountRead>) {
    let Call {
        params,
        session,
        reply,
    } = call;
    // A server without vendors has no accounts, with any configuration.
    if server.options.vendors.is_none() {
        return reply.ok(&response(None, false));
    }
    let shared_server = server.clone();
    server.read_config(move |snapshot| {
        let account = snapshot.and_then(|it| {
            let state = it.in_force();
            ProviderAccount::configured(&shared_server, &state, None)
        });
        // Without a provider there is nothing to sign in with, which is no error for this request.
        let Ok(account) = account else {
            return reply.ok(&response(None, false));
        };
        let span = reply.span().clone();
        let reading = async move {
            reply.finish(read(account, params.refresh_token, session.number).await);
        };
        // The configuration may have been loaded for another request.
        tokio::spawn(reading.instrument(span));
    });
}

async fn read(
    account: ProviderAccount,
    refresh_token: bool,
    connection: u64,
) -> Result<GetAccountResponse, WireError> {
    let ProviderAccount { vendors, provider } = account;
    if refresh_token && let Err(why) = vendors.renew(&provider).await {
        // The account is still known if its token cannot be renewed.
        let (provider, why) = (&provider.name, why.to_string());
        tracing::warn!(connection, provider, why, "the token was not renewed");
    }
    let is_required = match &provider.key {
        KeySource::Stored(it) => it.is_required,
        _ => false,
    };
    let sign_in = vendors.account(&provider).await;
    let sign_in = sign_in.map_err(|why| WireError::Refused(why.to_string().into()))?;
    Ok(response(sign_in, is_required))
}

fn response(sign_in: Option<SignInKind>, requires_openai_auth: bool) -> GetAccountResponse {
    let tokens = ChatgptAccount {
        email: None,
        plan_type: PlanType::Unknown,
        workspace_name: None,
    };
    GetAccountResponse {
        requires_openai_auth,
        account: sign_in.map(|it| match it {
            SignInKind::Key => Account::ApiKey,
            SignInKind::Tokens => Account::Chatgpt(tokens),
        }),
        workspace_routing: None,
    }
}
