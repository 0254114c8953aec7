//! `account/read`: how someone is signed in with the configured provider. Most need nobody to be: their keys are
//! where the configuration says.

use std::sync::Arc;

use raddle_protocol::methods::AccountRead;
use raddle_protocol::{Account, ChatgptAccount, GetAccountResponse, PlanType};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::accounts::ProviderAccount;
use crate::services::providers::KeySource;
use crate::services::vendors::SignInKind;
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<AccountRead>) {
    if rooms.options.vendors.is_none() {
        return call.reply.ok(&told(None, false));
    }
    let rooms = rooms.clone();
    tokio::spawn(async move {
        // Without a provider there is nothing to sign in with, which is no error to one who asks.
        let Ok(desk) = ProviderAccount::of(&rooms, None).await else {
            return call.reply.ok(&told(None, false));
        };
        let refused = |why: String| WireError::Refused(why.into());
        let account = async {
            if call.params.refresh_token
                && let Err(why) = desk.vendors.renew(&desk.provider).await
            {
                // Who is signed in is known all the same.
                let provider = &desk.provider.name;
                tracing::warn!(provider, why, "what was signed in with is not renewed");
            }
            desk.vendors.account(&desk.provider).await
        };
        let is_required = match &desk.provider.key {
            KeySource::Stored(it) => it.is_required,
            _ => false,
        };
        let account = account.await.map(|it| told(it, is_required));
        call.reply.finish(account.map_err(refused));
    });
}

fn told(how: Option<SignInKind>, requires_openai_auth: bool) -> GetAccountResponse {
    let tokens = ChatgptAccount {
        email: None,
        plan_type: PlanType::Unknown,
        workspace_name: None,
    };
    GetAccountResponse {
        requires_openai_auth,
        account: how.map(|it| match it {
            SignInKind::Key => Account::ApiKey,
            SignInKind::Tokens => Account::Chatgpt(tokens),
        }),
        workspace_routing: None,
    }
}
