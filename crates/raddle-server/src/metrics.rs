//! What `/metrics` says: counts of requests and connections, kept here, and of threads, kept by the agent.

mod process;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use raddle_agent::{CounterCell, Counters, Timings, token_kinds};
use raddle_protocol::METHODS;
use raddle_rpc::{Outgoing, Peer, Transport, code};

use self::text::{Kind, TextEncoder};
use crate::services::ServerState;

/// How a request was answered, by the code of its error.
const OUTCOMES: [(&str, i64); 5] = [
    ("invalid_request", code::INVALID_REQUEST),
    ("method_not_found", code::METHOD_NOT_FOUND),
    ("invalid_params", code::INVALID_PARAMS),
    ("internal_error", code::INTERNAL),
    ("overloaded", code::OVERLOADED),
];

/// The name under which all methods are counted that are not in the table: whoever asks for many cannot
/// make this grow.
const UNKNOWN: &str = "unknown";

const TRANSPORTS: [(&str, Transport); 5] = [
    ("stdio", Transport::Stdio),
    ("websocket", Transport::Websocket),
    ("unix", Transport::Unix),
    ("memory", Transport::Memory),
    ("relay", Transport::Relay),
];

/// The numbers of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    begun: Instant,
    /// Of each method: answers without an error, then those of each outcome.
    requests: BTreeMap<&'static str, [CounterCell; OUTCOMES.len() + 1]>,
    /// Those who are here, by the numbers of their connections.
    open_connections: Mutex<HashMap<u64, (Transport, Outgoing)>>,
    accepted: [CounterCell; TRANSPORTS.len()],
    /// Connections that were closed because they read too slowly.
    pub(crate) too_slow: CounterCell,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    Result,
    /// With an error of this code.
    Error(i64),
}

/// A connection is here for as long as this is.
pub(crate) struct ConnectionGuard<'a> {
    metrics: &'a Metrics,
    number: u64,
}

impl Default for Metrics {
    fn default() -> Self {
        let names = METHODS.iter().map(|method| method.name);
        Self {
            begun: Instant::now(),
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
    /// A request was answered.
    pub(crate) fn answered(&self, method: &str, outcome: RequestOutcome) {
        let counts = self.requests.get(method);
        let at = match outcome {
            RequestOutcome::Result => 0,
            // A code that has no page would be a fault of ours.
            RequestOutcome::Error(code) => {
                let of = |code| OUTCOMES.iter().position(|(_, it)| *it == code);
                1 + of(code).or_else(|| of(code::INTERNAL)).unwrap_or(0)
            }
        };
        if let Some(counts) = counts.or_else(|| self.requests.get(UNKNOWN)) {
            counts[at].add(1);
        }
    }

    /// A connection came.
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
        let one = (peer.transport, outgoing.clone());
        self.here().insert(number, one);
        ConnectionGuard {
            metrics: self,
            number,
        }
    }

    fn here(&self) -> MutexGuard<'_, HashMap<u64, (Transport, Outgoing)>> {
        self.open_connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        self.metrics.here().remove(&self.number);
    }
}

/// All numbers of a server, in the text format of Prometheus.
pub(crate) fn text(rooms: &ServerState) -> String {
    let metrics = &rooms.metrics;
    let mut text = TextEncoder::default();
    text.family("raddle_build_info", Kind::Gauge, "What is running.");
    text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.family(
        "raddle_uptime_seconds",
        Kind::Gauge,
        "Seconds since the server was opened.",
    );
    text.seconds(&[], metrics.begun.elapsed());
    process::write(&mut text, start(metrics.begun));
    connections(&mut text, rooms);
    requests(&mut text, metrics);
    threads(
        &mut text,
        rooms.threads.loaded().len(),
        rooms.threads.counters(),
    );
    store(&mut text, rooms.threads.counters());
    text.finish()
}

/// When the server was opened, as time since 1970.
fn start(begun: Instant) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().saturating_sub(begun.elapsed())
}

fn connections(text: &mut TextEncoder, rooms: &ServerState) {
    let metrics = &rooms.metrics;
    let (mut open, mut bytes) = ([0_u64; TRANSPORTS.len()], 0);
    for (transport, outgoing) in metrics.here().values() {
        bytes += outgoing.queued_bytes() as u64;
        if let Some(at) = TRANSPORTS.iter().position(|(_, it)| it == transport) {
            open[at] += 1;
        }
    }
    text.family(
        "raddle_connections_open",
        Kind::Gauge,
        "Connections that are open.",
    );
    for ((name, _), count) in TRANSPORTS.iter().zip(open) {
        text.sample(&[("transport", name)], count);
    }
    text.family(
        "raddle_connections_total",
        Kind::Counter,
        "Connections that came.",
    );
    for ((name, _), count) in TRANSPORTS.iter().zip(&metrics.accepted) {
        text.sample(&[("transport", name)], count.get());
    }
    text.family(
        "raddle_connections_failed_total",
        Kind::Counter,
        "Connections that ended by a fault of the server, or because they read too slowly.",
    );
    text.sample(
        &[("why", "fault")],
        rooms.panicked_connections.load(Ordering::Relaxed),
    );
    text.sample(&[("why", "too_slow")], metrics.too_slow.get());
    text.family(
        "raddle_outgoing_bytes",
        Kind::Gauge,
        "Bytes that wait until clients take them.",
    );
    text.sample(&[], bytes);
    text.family(
        "raddle_subscribers_behind_total",
        Kind::Counter,
        "How often a client read so slowly that it was told from the journal.",
    );
    text.sample(&[], rooms.threads.counters().fell_behind.get());
}

fn requests(text: &mut TextEncoder, metrics: &Metrics) {
    text.family(
        "raddle_requests_total",
        Kind::Counter,
        "Requests that were answered, by method and outcome.",
    );
    let outcomes = || {
        ["ok"]
            .into_iter()
            .chain(OUTCOMES.iter().map(|(name, _)| *name))
    };
    for (method, counts) in &metrics.requests {
        for (outcome, count) in outcomes().zip(counts) {
            // Of those that never happened there would be hundreds.
            if count.get() > 0 {
                text.sample(&[("method", method), ("outcome", outcome)], count.get());
            }
        }
    }
}

fn threads(text: &mut TextEncoder, live: usize, tally: &Counters) {
    text.family("raddle_threads_live", Kind::Gauge, "Threads in memory.");
    text.sample(&[], live as u64);
    text.family(
        "raddle_turns_started_total",
        Kind::Counter,
        "Turns that began.",
    );
    text.sample(&[], tally.turns_started.get());
    let named = [
        (
            "raddle_turns_ended_total",
            "Turns that ended, by how.",
            "reason",
            &tally.turns_ended,
        ),
        (
            "raddle_model_calls_total",
            "Calls of a model that ended, by how.",
            "outcome",
            &tally.model_calls,
        ),
        (
            "raddle_model_tokens_total",
            "Tokens as vendors counted them; input includes cached_input, output includes reasoning_output.",
            "kind",
            &tally.tokens,
        ),
    ];
    for (name, help, label, counts) in named {
        text.family(name, Kind::Counter, help);
        for (value, count) in counts.all() {
            text.sample(&[(label, value)], count);
        }
    }
    text.family(
        "raddle_provider_tokens_total",
        Kind::Counter,
        "The same tokens, by the provider that answered.",
    );
    for (provider, usage) in tally.provider_tokens.all() {
        for (kind, count) in token_kinds(&usage) {
            text.sample(&[("provider", &provider), ("kind", kind)], count);
        }
    }
    text.family(
        "raddle_model_retries_total",
        Kind::Counter,
        "Calls of a model that broke off and are made again.",
    );
    text.sample(&[], tally.model_retries.get());
}

fn store(text: &mut TextEncoder, tally: &Counters) {
    text.family(
        "raddle_store_append_seconds",
        Kind::Summary,
        "How long appends took, by what they survive.",
    );
    let classes: [(&str, &Timings); 2] = [
        ("power", &tally.appends_power),
        ("process", &tally.appends_process),
    ];
    for (class, times) in classes {
        text.times(&[("class", class)], times.sum(), times.count());
    }
    text.family(
        "raddle_store_appends_failed_total",
        Kind::Counter,
        "Appends that were not taken, by why.",
    );
    for (why, count) in tally.appends_failed.all() {
        text.sample(&[("why", why)], count);
    }
    text.family(
        "raddle_store_appends_waiting",
        Kind::Gauge,
        "Appends under way, those that wait in line included.",
    );
    text.sample(&[], tally.appends_waiting.get());
}
