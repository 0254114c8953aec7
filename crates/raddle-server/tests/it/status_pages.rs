//! `/livez` and `/metrics`: what those see who watch a server.

use std::sync::Arc;
use std::time::Duration;

use raddle_rpc::{Access, AdminPages, Connection, HttpPage};
use raddle_server::Server;
use raddle_store::{FaultMode, FaultyJournal};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::TestClient;
use crate::player::Stage;

/// A page that is there, and who may read it.
async fn page(board: &dyn AdminPages, path: &str) -> (Access, HttpPage) {
    let notice = board.page(path).expect("a page");
    (notice.access, notice.page.await)
}

async fn metrics(board: &dyn AdminPages) -> String {
    let (readers, page) = page(board, "/metrics").await;
    assert_eq!(readers, Access::Admitted);
    assert_eq!(page.status, 200);
    page.text
}

async fn health(board: &dyn AdminPages) -> (u16, Value) {
    let (readers, page) = page(board, "/livez").await;
    assert_eq!(readers, Access::Everyone);
    (page.status, serde_json::from_str(&page.text).expect("JSON"))
}

fn healthy(store: &str) -> (u16, Value) {
    (
        200,
        json!({"status": "ok", "parts": {"loop": "ok", "store": store}}),
    )
}

fn stuck(of_loop: &str, store: &str) -> (u16, Value) {
    let parts = json!({"loop": of_loop, "store": store});
    (503, json!({"status": "stuck", "parts": parts}))
}

/// Takes those in who look at `/livez`, as the loop of a server does.
fn take_callers(mut server: Server, mut callers: mpsc::Receiver<Connection>) {
    tokio::spawn(async move {
        while let Some(caller) = callers.recv().await {
            server.serve(caller);
        }
    });
}

/// Each of these lines is on the page.
fn says(page: &str, lines: &[&str]) {
    for line in lines {
        let found = page.lines().any(|it| it == *line);
        assert!(found, "no line {line} in\n{page}");
    }
}

#[tokio::test]
async fn a_turn_moves_the_counters() {
    let mut stage = Stage::new();
    stage.says = vec!["warp and weft".to_owned()];
    let mut server = stage.open();
    let (board, _callers) = server.status_pages();
    says(
        &metrics(&*board).await,
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
    let moved = metrics(&*board).await;
    says(
        &moved,
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
    assert!(!moved.contains("raddle_store_append_seconds_count{class=\"power\"} 0"));

    client.leave().await.when_ended().await;
    says(
        &metrics(&*board).await,
        &[
            "raddle_connections_open{transport=\"memory\"} 0",
            "raddle_connections_total{transport=\"memory\"} 1",
        ],
    );
}

#[tokio::test]
async fn methods_that_are_not_in_the_table_share_one_line() {
    let stage = Stage::new();
    let mut server = stage.open();
    let (board, _callers) = server.status_pages();
    let mut client = TestClient::connect(&mut server).await;
    for number in 0..100 {
        let method = format!("made/up/{number}\"}} 1");
        client.ask(&method, json!({})).await.expect_err("unknown");
    }
    // It is in the table, and not served.
    client
        .ask("skills/extraRoots/set", json!({}))
        .await
        .expect_err("not served");
    let page = metrics(&*board).await;
    says(
        &page,
        &[
            "raddle_requests_total{method=\"unknown\",outcome=\"method_not_found\"} 100",
            "raddle_requests_total{method=\"skills/extraRoots/set\",outcome=\"method_not_found\"} 1",
        ],
    );
    assert!(!page.contains("made/up"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_store_is_told_in_time() {
    let stage = Stage::new();
    let journal = Arc::new(FaultyJournal::new());
    let threads = crate::script::threads_in(journal.clone(), &[]);
    let server = Server::open(stage.options(), threads).expect("a server");
    let (board, callers) = server.status_pages();
    take_callers(server, callers);
    for (mood, expected) in [
        (FaultMode::Healthy, healthy("ok")),
        (FaultMode::Slow, stuck("ok", "stuck")),
        (FaultMode::Unavailable, stuck("ok", "stuck")),
        (FaultMode::Lost, stuck("ok", "stuck")),
        (FaultMode::Full, healthy("full")),
        (FaultMode::ReadOnly, healthy("readOnly")),
        (FaultMode::Healthy, healthy("ok")),
    ] {
        journal.set(mood);
        let begun = Instant::now();
        assert_eq!(health(&*board).await, expected, "{mood:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{mood:?}");
        // What was found last is too old then.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_takes_nobody_is_stuck() {
    let stage = Stage::new();
    let server = stage.open();
    let (board, callers) = server.status_pages();
    let begun = Instant::now();
    assert_eq!(health(&*board).await, stuck("stuck", "ok"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    drop(callers);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(health(&*board).await, stuck("stuck", "ok"));
}

#[tokio::test(start_paused = true)]
async fn who_asks_often_is_told_what_was_found_last() {
    let stage = Stage::new();
    let server = stage.open();
    let (board, callers) = server.status_pages();
    take_callers(server, callers);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let board = board.clone();
        asking.spawn(async move { health(&*board).await });
    }
    while let Some(told) = asking.join_next().await {
        assert_eq!(told.expect("no panic"), healthy("ok"));
    }
    says(
        &metrics(&*board).await,
        &["raddle_requests_total{method=\"initialize\",outcome=\"ok\"} 1"],
    );
}

#[tokio::test]
async fn there_is_no_other_page() {
    let stage = Stage::new();
    let server = stage.open();
    let (board, _callers) = server.status_pages();
    for path in ["/", "/livez/", "/metrics/x", "/readyz", ""] {
        assert!(board.page(path).is_none(), "{path}");
    }
}
