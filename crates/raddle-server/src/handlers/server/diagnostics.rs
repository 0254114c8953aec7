//! `server/diagnostics`: the server's own gauges.

use std::sync::Arc;

use raddle_protocol::methods::ServerDiagnostics;

use crate::call::Call;
use crate::metrics::diagnostics;
use crate::services::ServerState;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<ServerDiagnostics>) {
    call.reply.ok(&diagnostics::response(state));
}
