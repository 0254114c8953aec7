//! `account/login/cancel`: give up a sign-in that is under way.

use std::sync::Arc;

use raddle_protocol::methods::AccountLoginCancel;
use raddle_protocol::{CancelLoginAccountResponse, CancelLoginAccountStatus};

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<AccountLoginCancel>) {
    let given_up = rooms.accounts.take(&call.params.login_id);
    let status = match given_up {
        Some(_) => CancelLoginAccountStatus::Canceled,
        None => CancelLoginAccountStatus::NotFound,
    };
    call.reply.ok(&CancelLoginAccountResponse { status });
    // Only now, so that its end is told after the answer.
    drop(given_up);
}
