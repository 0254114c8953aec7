//! `/livez`, `/readyz` and `/metrics`: the pages for monitoring a server.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::Durability;
use raddle_rpc::{Access, AdminPages, Connection, HttpPage};
use raddle_server::Server;
use raddle_store::{FaultMode, FaultyJournal};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::TestClient;
use crate::player::Harness;

/// Returns a page, and its access.
async fn page(pages: &dyn AdminPages, path: &str) -> (Access, HttpPage) {
    let lazy_page = pages.page(path).expect("a page");
    (lazy_page.access, lazy_page.page.await)
}

async fn metrics(pages: &dyn AdminPages) -> String {
    let (access, page) = page(pages, "/metrics").await;
    assert_eq!(access, Access::Admitted);
    assert_eq!(page.status, 200);
    page.text
}

async fn health(pages: &dyn AdminPages) -> (u16, Value) {
    let (access, page) = page(pages, "/livez").await;
    assert_eq!(access, Access::Everyone);
    (page.status, serde_json::from_str(&page.text).expect("JSON"))
}

fn healthy(store: &str) -> (u16, Value) {
    (
        200,
        json!({"status": "ok", "parts": {"loop": "ok", "store": store}}),
    )
}

fn stuck(loop_status: &str, store: &str) -> (u16, Value) {
    let parts = json!({"loop": loop_status, "store": store});
    (503, json!({"status": "stuck", "parts": parts}))
}

/// Serves the probes of `/livez`, as the accept loop of a server does.
fn serve_probes(mut server: Server, mut probes: mpsc::Receiver<Connection>) {
    tokio::spawn(async move {
        while let Some(probe) = probes.recv().await {
            server.serve(probe);
        }
    });
}

/// Checks that each of these lines is on the page.
fn assert_lines(page: &str, lines: &[&str]) {
    for line in lines {
        let has_line = page.lines().any(|it| it == *line);
        assert!(has_line, "no line {line} in\n{page}");
    }
}

#[tokio::test]
async fn a_turn_moves_the_counters() {
    let mut harness = Harness::new();
    harness.says = vec!["warp and weft".to_owned()];
    let mut server = harness.open();
    let (pages, _probes) = server.status_pages();
    assert_lines(
        &metrics(&*pages).await,
        &[
            "raddle_connections_open{transport=\"memory\"} 0",
            "raddle_threads_live 0",
            "raddle_turns_started_total 0",
            "raddle_outgoing_bytes 0",
            "raddle_store_append_seconds_count{class=\"power\"} 0",
            "raddle_store_appends_waiting 0",
        ],
    );

    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    // The script has one line, so the second turn fails.
    for _ in 0..2 {
        let input = json!([{"type": "text", "text": "hello"}]);
        client.request("turn/start", json!({"threadId": thread, "input": input}));
        while client.next().await["method"] != "turn/completed" {}
    }
    let _ = client.ask("turn/start", json!({})).await;
    let page_after = metrics(&*pages).await;
    assert_lines(
        &page_after,
        &[
            "raddle_connections_open{transport=\"memory\"} 1",
            "raddle_connections_total{transport=\"memory\"} 1",
            "raddle_requests_total{method=\"initialize\",outcome=\"ok\"} 1",
            "raddle_requests_total{method=\"thread/start\",outcome=\"ok\"} 1",
            "raddle_requests_total{method=\"turn/start\",outcome=\"ok\"} 2",
            "raddle_requests_total{method=\"turn/start\",outcome=\"invalid_request\"} 1",
            "raddle_threads_live 1",
            "raddle_turns_started_total 2",
            "raddle_turns_ended_total{reason=\"completed\"} 1",
            "raddle_turns_ended_total{reason=\"other\"} 1",
            "raddle_model_calls_total{outcome=\"done\"} 1",
            "raddle_model_calls_total{outcome=\"other\"} 1",
            "raddle_model_retries_total 0",
            "raddle_model_tokens_total{kind=\"input\"} 0",
            "raddle_provider_tokens_total{provider=\"other\",kind=\"input\"} 0",
            "raddle_store_appends_waiting 0",
        ],
    );
    assert!(!page_after.contains("raddle_store_append_seconds_count{class=\"power\"} 0"));

    client.disconnect().await.when_ended().await;
    assert_lines(
        &metrics(&*pages).await,
        &[
            "raddle_connections_open{transport=\"memory\"} 0",
            "raddle_connections_total{transport=\"memory\"} 1",
        ],
    );
}

#[tokio::test]
async fn methods_that_are_not_in_the_table_share_one_line() {
    let harness = Harness::new();
    let mut server = harness.open();
    let (pages, _probes) = server.status_pages();
    let mut client = TestClient::connect(&mut server).await;
    for number in 0..100 {
        let method = format!("made/up/{number}\"}} 1");
        client.ask(&method, json!({})).await.expect_err("unknown");
    }
    let page = metrics(&*pages).await;
    assert_lines(
        &page,
        &["raddle_requests_total{method=\"unknown\",outcome=\"method_not_found\"} 100"],
    );
    assert!(!page.contains("made/up"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_store_is_reported_in_time() {
    let harness = Harness::new();
    let journal = Arc::new(FaultyJournal::new());
    let threads = crate::script::threads_in(journal.clone(), &[]);
    let server = Server::open(harness.options(), threads).expect("a server");
    let (pages, probes) = server.status_pages();
    serve_probes(server, probes);
    for (fault, expected) in [
        (FaultMode::Healthy, healthy("ok")),
        (FaultMode::Slow, stuck("ok", "stuck")),
        (FaultMode::Unavailable, stuck("ok", "stuck")),
        (FaultMode::Lost, stuck("ok", "stuck")),
        (FaultMode::Full, healthy("full")),
        (FaultMode::ReadOnly, healthy("readOnly")),
        (FaultMode::Healthy, healthy("ok")),
    ] {
        journal.set(fault);
        let started = Instant::now();
        assert_eq!(health(&*pages).await, expected, "{fault:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{fault:?}");
        // The cached result has expired then.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_database_counts_for_readiness_and_not_for_liveness() {
    let harness = Harness::new();
    let journal = Arc::new(FaultyJournal::new());
    journal.set_durability(Durability::Pending);
    let threads = crate::script::threads_in(journal.clone(), &[]);
    let server = Server::open(harness.options(), threads).expect("a server");
    let (pages, probes) = server.status_pages();
    serve_probes(server, probes);
    for (fault, durability, status, store) in [
        (FaultMode::Healthy, Durability::Synchronous, 200, "ok"),
        (FaultMode::Slow, Durability::Synchronous, 503, "unavailable"),
        (
            FaultMode::Unavailable,
            Durability::Relaxed,
            503,
            "unavailable",
        ),
        (FaultMode::ReadOnly, Durability::Relaxed, 503, "readOnly"),
        (FaultMode::Full, Durability::Relaxed, 200, "full"),
        (FaultMode::Healthy, Durability::Relaxed, 200, "ok"),
    ] {
        journal.set(fault);
        journal.set_durability(durability);
        let (access, ready) = page(&*pages, "/readyz").await;
        assert_eq!(
            (access, ready.status),
            (Access::Everyone, status),
            "{fault:?}"
        );
        let report: Value = serde_json::from_str(&ready.text).expect("JSON");
        let verdict = if status == 200 { "ready" } else { "notReady" };
        let expected = json!({"status": verdict, "store": store, "durability": durability.name()});
        assert_eq!(report, expected, "{fault:?}");
        let live = json!({"status": "ok", "parts": {"loop": "ok"}});
        assert_eq!(health(&*pages).await, (200, live), "{fault:?}");
        // The cached results have expired then.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_accepts_no_connections_is_stuck() {
    let harness = Harness::new();
    let server = harness.open();
    let (pages, probes) = server.status_pages();
    let started = Instant::now();
    assert_eq!(health(&*pages).await, stuck("stuck", "ok"));
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(probes);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(health(&*pages).await, stuck("stuck", "ok"));
}

#[tokio::test(start_paused = true)]
async fn frequent_health_checks_are_cached() {
    let harness = Harness::new();
    let server = harness.open();
    let (pages, probes) = server.status_pages();
    serve_probes(server, probes);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let pages = pages.clone();
        tasks.spawn(async move { health(&*pages).await });
    }
    while let Some(outcome) = tasks.join_next().await {
        assert_eq!(outcome.expect("no panic"), healthy("ok"));
    }
    assert_lines(
        &metrics(&*pages).await,
        &["raddle_requests_total{method=\"initialize\",outcome=\"ok\"} 1"],
    );
}

#[tokio::test]
async fn there_is_no_other_page() {
    let harness = Harness::new();
    let server = harness.open();
    let (pages, _probes) = server.status_pages();
    for path in ["/", "/livez/", "/metrics/x", "/readyz", ""] {
        assert!(pages.page(path).is_none(), "{path}");
    }
}
