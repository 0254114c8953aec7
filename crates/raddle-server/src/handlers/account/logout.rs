//! `account/logout`: forget what the configured provider was signed in with.

use std::sync::Arc;

use raddle_protocol::LogoutAccountResponse;
use raddle_protocol::methods::AccountLogout;

use crate::call::Call;
use crate::services::ServerState;
use crate::services::accounts::{self, ProviderAccount};
use crate::wire_error::WireError;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<AccountLogout>) {
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let forgotten = async {
            let desk = ProviderAccount::of(&rooms, None).await?;
            let forgotten = desk.vendors.forget(&desk.provider).await;
            forgotten.map_err(|why| WireError::Refused(why.into()))
        };
        let forgotten = forgotten.await;
        let is_forgotten = forgotten.is_ok();
        call.reply
            .finish(forgotten.map(|()| LogoutAccountResponse {}));
        if is_forgotten {
            accounts::updated(&rooms, None);
        }
    });
}
