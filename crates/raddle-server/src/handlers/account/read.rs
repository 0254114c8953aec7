//! `account/read`: how the user is signed in with the configured provider. Most providers need no
//! sign-in: the configuration names the source of their key.

use std::sync::Arc;

use raddle_config::{KeySource, SignInKind, VendorRequestError};
use raddle_protocol::methods::AccountRead;
use raddle_protocol::{Account, ChatgptAccount, GetAccountResponse, PlanType};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::accounts::ProviderAccount;
use crate::spans;
use crate::wire_error::WireError;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<AccountRead>) {
    if state.options.vendors.is_none() {
        return call.reply.ok(&response(None, false));
    }
    let state = state.clone();
    spans::spawn(async move {
        // Without a provider there is nothing to sign in with, which is no error for this request.
        let Ok(account_of_provider) = ProviderAccount::of(&state, None).await else {
            return call.reply.ok(&response(None, false));
        };
        let refused = |why: VendorRequestError| WireError::Refused(why.to_string().into());
        let account = async {
            if call.params.refresh_token
                && let Err(why) = account_of_provider
                    .vendors
                    .renew(&account_of_provider.provider)
                    .await
            {
                // The account is still known if its token cannot be renewed.
                let provider = &account_of_provider.provider.name;
                let why = why.to_string();
                tracing::warn!(provider, why, "the token was not renewed");
            }
            account_of_provider
                .vendors
                .account(&account_of_provider.provider)
                .await
        };
        let is_required = match &account_of_provider.provider.key {
            KeySource::Stored(it) => it.is_required,
            _ => false,
        };
        let account = account.await.map(|it| response(it, is_required));
        call.reply.finish(account.map_err(refused));
    });
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
