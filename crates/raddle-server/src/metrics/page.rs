//! The page `/metrics`, in the text format of Prometheus.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use raddle_agent::{Counters, Timings, token_kinds};
use raddle_config::clock::now;

use super::text::{Kind, TextEncoder};
use super::{Metrics, OUTCOMES, TRANSPORTS, process};
use crate::services::ServerState;

/// Returns all metrics.
pub(crate) fn text(state: &ServerState) -> String {
    let metrics = &state.metrics;
    let mut text = TextEncoder::default();
    text.family("raddle_build_info", Kind::Gauge, "Version of the server.");
    text.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.family(
        "raddle_uptime_seconds",
        Kind::Gauge,
        "Seconds since the server was opened.",
    );
    text.seconds(&[], metrics.started.elapsed());
    process::write(&mut text, start(metrics.started));
    connections(&mut text, state);
    requests(&mut text, metrics);
    threads(
        &mut text,
        state.threads.loaded().len(),
        state.threads.counters(),
    );
    store(&mut text, state.threads.counters());
    text.finish()
}

/// Returns the start time of the server, as time since 1970.
fn start(started: Instant) -> Duration {
    let now = Duration::from_millis(now().0.unsigned_abs());
    now.saturating_sub(started.elapsed())
}

fn connections(text: &mut TextEncoder, state: &ServerState) {
    let metrics = &state.metrics;
    let (mut open, mut bytes) = ([0_u64; TRANSPORTS.len()], 0);
    for (transport, outgoing) in metrics.connections().values() {
        bytes += outgoing.queued_bytes() as u64;
        if let Some(at) = TRANSPORTS.iter().position(|(_, it)| it == transport) {
            open[at] += 1;
        }
    }
    text.family("raddle_connections_open", Kind::Gauge, "Open connections.");
    for ((name, _), count) in TRANSPORTS.iter().zip(open) {
        text.sample(&[("transport", name)], count);
    }
    text.family(
        "raddle_connections_total",
        Kind::Counter,
        "Accepted connections.",
    );
    for ((name, _), count) in TRANSPORTS.iter().zip(&metrics.accepted) {
        text.sample(&[("transport", name)], count.get());
    }
    text.family(
        "raddle_connections_failed_total",
        Kind::Counter,
        "Connections closed by a fault of the server, or because the client read too slowly.",
    );
    text.sample(
        &[("why", "fault")],
        state.panicked_connections.load(Ordering::Relaxed),
    );
    text.sample(&[("why", "too_slow")], metrics.too_slow.get());
    text.family(
        "raddle_outgoing_bytes",
        Kind::Gauge,
        "Bytes queued for clients.",
    );
    text.sample(&[], bytes);
    text.family(
        "raddle_subscribers_behind_total",
        Kind::Counter,
        "How often a slow client was caught up from the journal.",
    );
    text.sample(&[], state.threads.counters().fell_behind.get());
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
            // Skips the hundreds of combinations that never happened.
            if count.get() > 0 {
                text.sample(&[("method", method), ("outcome", outcome)], count.get());
            }
        }
    }
}

fn threads(text: &mut TextEncoder, live: usize, counters: &Counters) {
    text.family("raddle_threads_live", Kind::Gauge, "Threads in memory.");
    text.sample(&[], live as u64);
    text.family(
        "raddle_turns_started_total",
        Kind::Counter,
        "Started turns.",
    );
    text.sample(&[], counters.turns_started.get());
    let families = [
        (
            "raddle_turns_ended_total",
            "Ended turns, by reason.",
            "reason",
            &counters.turns_ended,
        ),
        (
            "raddle_model_calls_total",
            "Ended model calls, by outcome.",
            "outcome",
            &counters.model_calls,
        ),
        (
            "raddle_model_tokens_total",
            "Tokens as vendors counted them; input includes cached_input, output includes reasoning_output.",
            "kind",
            &counters.tokens,
        ),
    ];
    for (name, help, label, counts) in families {
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
    for (provider, usage) in counters.provider_tokens.all() {
        for (kind, count) in token_kinds(&usage) {
            text.sample(&[("provider", &provider), ("kind", kind)], count);
        }
    }
    text.family(
        "raddle_model_retries_total",
        Kind::Counter,
        "Model calls that broke off and are retried.",
    );
    text.sample(&[], counters.model_retries.get());
}

fn store(text: &mut TextEncoder, counters: &Counters) {
    text.family(
        "raddle_store_append_seconds",
        Kind::Summary,
        "Duration of appends, by durability class.",
    );
    let classes: [(&str, &Timings); 2] = [
        ("power", &counters.appends_power),
        ("process", &counters.appends_process),
    ];
    for (class, times) in classes {
        text.times(&[("class", class)], times.sum(), times.count());
    }
    text.family(
        "raddle_store_appends_failed_total",
        Kind::Counter,
        "Failed appends, by cause.",
    );
    for (why, count) in counters.appends_failed.all() {
        text.sample(&[("why", why)], count);
    }
    text.family(
        "raddle_store_appends_waiting",
        Kind::Gauge,
        "Appends in progress, including queued ones.",
    );
    text.sample(&[], counters.appends_waiting.get());
}
