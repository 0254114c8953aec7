//! `account/read`: who is signed in. Nobody needs to be: keys belong to model providers.

use std::sync::Arc;

use raddle_protocol::GetAccountResponse;
use raddle_protocol::methods::AccountRead;

use crate::call::Call;
use crate::rooms::Rooms;

pub(crate) fn handle(_rooms: &Arc<Rooms>, call: Call<AccountRead>) {
    call.reply.ok(&GetAccountResponse {
        account: None,
        requires_openai_auth: false,
        workspace_routing: None,
    });
}
