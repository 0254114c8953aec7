//! `account/logout`: delete the stored credentials of the configured provider.

use std::sync::Arc;

use raddle_protocol::LogoutAccountResponse;
use raddle_protocol::methods::AccountLogout;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::accounts::{self, ProviderAccount};
use crate::wire_error::WireError;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<AccountLogout>) {
    let logout = async {
        let account = ProviderAccount::of(&state, None).await?;
        let deleted = account.vendors.forget(&account.provider).await;
        let answer = deleted.map(|_| LogoutAccountResponse {});
        answer.map_err(|why| WireError::Refused(why.to_string().into()))
    };
    let logged_out = logout.await;
    let is_logged_out = logged_out.is_ok();
    call.reply.finish(logged_out);
    if is_logged_out {
        accounts::updated(&state, None);
    }
}
