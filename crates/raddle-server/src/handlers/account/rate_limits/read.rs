//! `account/rateLimits/read`: the usage limits of the account. The server asks no vendor for them,
//! so none is known.

use std::sync::Arc;

use raddle_protocol::GetAccountRateLimitsResponse;
use raddle_protocol::methods::AccountRateLimitsRead;

use crate::call::Call;
use crate::services::ServerState;

pub(crate) fn handle(_state: &Arc<ServerState>, call: Call<AccountRateLimitsRead>) {
    call.reply.ok(&GetAccountRateLimitsResponse::default());
}
