//! `account/login/cancel`: cancel a sign-in that is in progress.

use std::sync::Arc;

use raddle_protocol::methods::AccountLoginCancel;
use raddle_protocol::{CancelLoginAccountResponse, CancelLoginAccountStatus};

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<AccountLoginCancel>) {
    let login = state.accounts.take(&call.params.login_id);
    let status = match login {
        Some(_) => CancelLoginAccountStatus::Canceled,
        None => CancelLoginAccountStatus::NotFound,
    };
    call.reply.ok(&CancelLoginAccountResponse { status });
    // Dropped last, so that the completion notification follows the response.
    drop(login);
}
