//! The gauges that `server/diagnostics` reports.

use raddle_protocol::{
    ServerDiagnosticsGauge, ServerDiagnosticsProcess, ServerDiagnosticsResponse,
};

use super::process;
use crate::services::ServerState;

/// Returns the present values.
pub(crate) fn response(state: &ServerState) -> ServerDiagnosticsResponse {
    let (mut open_connections, mut queued_bytes) = (0, 0);
    for (_, outgoing) in state.metrics.connections().values() {
        open_connections += 1;
        queued_bytes += outgoing.queued_bytes() as u64;
    }
    let gauge = |name: &str, value: u64| ServerDiagnosticsGauge {
        name: name.to_owned(),
        value,
    };
    ServerDiagnosticsResponse {
        gauges: vec![
            gauge("connections.open", open_connections),
            gauge("connections.outgoing_bytes", queued_bytes),
            gauge("threads.loaded", state.threads.loaded().len() as u64),
        ],
        process: ServerDiagnosticsProcess {
            id: std::process::id(),
            physical_footprint_bytes: None,
            resident_memory_bytes: process::resident_memory_bytes(),
        },
    }
}
