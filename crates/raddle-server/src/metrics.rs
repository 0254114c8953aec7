//! The metrics that `/metrics` serves: requests and connections, counted here, and threads, counted
//! by the agent.

pub(crate) mod diagnostics;
pub(crate) mod page;
mod process;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use raddle_agent::CounterCell;
use raddle_protocol::METHODS;
use raddle_rpc::{Outgoing, Peer, Transport, code};

/// Outcome label of each error code.
const OUTCOMES: [(&str, i64); 5] = [
    ("invalid_request", code::INVALID_REQUEST),
    ("method_not_found", code::METHOD_NOT_FOUND),
    ("invalid_params", code::INVALID_PARAMS),
    ("internal_error", code::INTERNAL),
    ("overloaded", code::OVERLOADED),
];

/// The name under which unknown methods are counted, so that a client cannot make the table grow.
const UNKNOWN: &str = "unknown";

const TRANSPORTS: [(&str, Transport); 5] = [
    ("stdio", Transport::Stdio),
    ("websocket", Transport::Websocket),
    ("unix", Transport::Unix),
    ("memory", Transport::Memory),
    ("relay", Transport::Relay),
];

/// Returns the name of a transport, as the metrics label it.
pub(crate) fn transport_name(transport: Transport) -> &'static str {
    let mut transports = TRANSPORTS.into_iter();
    let named = transports.find(|(_, it)| *it == transport);
    named.map(|(name, _)| name).unwrap_or_default()
}

/// The metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    started: Instant,
    /// Per method: responses without an error, then those of each outcome.
    requests: BTreeMap<&'static str, [CounterCell; OUTCOMES.len() + 1]>,
    /// The open connections, by number.
    open_connections: Mutex<HashMap<u64, (Transport, Outgoing)>>,
    accepted: [CounterCell; TRANSPORTS.len()],
    /// Connections that were closed because they read too slowly.
    pub(crate) too_slow: CounterCell,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Result,
    /// An error with this code.
    Error(i64),
}

/// Counts a connection as open until it is dropped.
pub(crate) struct ConnectionGuard<'a> {
    metrics: &'a Metrics,
    number: u64,
}

impl Default for Metrics {
    fn default() -> Self {
        let names = METHODS.iter().map(|method| method.name);
        Self {
            started: Instant::now(),
            requests: names
                .chain([UNKNOWN])
                .map(|name| (name, Default::default()))
                .collect(),
            open_connections: Mutex::default(),
            accepted: Default::default(),
            too_slow: CounterCell::default(),
        }
    }
}

impl Metrics {
    /// Counts an answered request.
    pub(crate) fn answered(&self, method: &str, outcome: RequestOutcome) {
        let counts = self.requests.get(method);
        let at = match outcome {
            RequestOutcome::Result => 0,
            // A code without a label is a bug in the server.
            RequestOutcome::Error(code) => {
                let position = |code| OUTCOMES.iter().position(|(_, it)| *it == code);
                1 + position(code)
                    .or_else(|| position(code::INTERNAL))
                    .unwrap_or(0)
            }
        };
        if let Some(counts) = counts.or_else(|| self.requests.get(UNKNOWN)) {
            counts[at].add(1);
        }
    }

    /// Counts a new connection.
    pub(crate) fn enter(
        &self,
        number: u64,
        peer: &Peer,
        outgoing: &Outgoing,
    ) -> ConnectionGuard<'_> {
        let at = TRANSPORTS.iter().position(|(_, it)| *it == peer.transport);
        if let Some(at) = at {
            self.accepted[at].add(1);
        }
        let entry = (peer.transport, outgoing.clone());
        self.connections().insert(number, entry);
        ConnectionGuard {
            metrics: self,
            number,
        }
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<u64, (Transport, Outgoing)>> {
        self.open_connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.metrics.connections().remove(&self.number);
    }
}
