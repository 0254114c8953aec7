use std::sync::Arc;
use std::time::Duration;

use raddle_model::{CallError, CallTimeouts, Dial, DialFuture, ModelClient};
use tokio::time::Instant;

use crate::support::{LIMITS, Vendor, user_request};

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_slow_but_alive_completes() {
    let vendor = Vendor::in_memory("");
    for _ in 0..100 {
        let started = Instant::now();
        let text = vendor
            .text("MOCK silence ms=1800 text n=5 size=4 gap_ms=1800 silence ms=1800")
            .await;
        assert_eq!(text.expect("an answer").len(), 20);
        assert!(started.elapsed() >= Duration::from_millis(6 * 1800));
    }
}

#[tokio::test(start_paused = true)]
async fn silence_counts_from_the_last_meaningful_event() {
    let vendor = Vendor::in_memory("");
    for (steps, expected_ms) in [
        ("stall", 2000),
        ("mute", 2000),
        ("keep-alive", 2000),
        ("silence ms=1500 text n=1 stall", 3500),
        ("text n=3 gap_ms=1000 keep-alive", 4000),
    ] {
        let started = Instant::now();
        let error = vendor.events(&format!("MOCK {steps}")).await;
        let error = error.expect_err(steps);
        assert_eq!(error, CallError::Silent { limit: LIMITS.idle }, "{steps}");
        // Timers have a resolution of a millisecond.
        let late = started.elapsed().as_millis() - expected_ms;
        assert!(late <= 5, "{steps}: {:?}", started.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn time_without_a_reader_is_no_silence() {
    let vendor = Vendor::in_memory("");
    let stream = vendor.ask("MOCK text say=one held text say=two").await;
    let mut stream = stream.expect("an answer");
    while !matches!(
        stream.next().await,
        Ok(Some(raddle_model::StreamEvent::Message { .. }))
    ) {}
    tokio::time::advance(Duration::from_secs(10)).await;
    vendor.server.release(1);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await.expect("no silence") {
        events.push(event);
    }
    assert_eq!(crate::support::streamed_text(&events), "two");
}

#[tokio::test(start_paused = true)]
async fn the_whole_answer_has_a_limit_too() {
    let vendor = Vendor::in_memory("");
    let limits = CallTimeouts {
        total: Duration::from_secs(5),
        ..LIMITS
    };
    let started = Instant::now();
    let request = user_request("MOCK text n=1000 gap_ms=100");
    let stream = vendor.client.responses(&vendor.endpoint, &request, limits);
    let mut stream = stream.await.expect("an answer");
    let error = loop {
        match stream.next().await {
            Ok(event) => assert!(event.is_some(), "it completed"),
            Err(error) => break error,
        }
    };
    assert_eq!(
        error,
        CallError::TooLong {
            limit: limits.total
        }
    );
    assert!(!error.is_transient());
    assert!(started.elapsed() <= Duration::from_millis(5005));
}

/// A host that does not answer.
#[derive(Debug)]
struct SilentHost;

impl Dial for SilentHost {
    fn dial<'a>(&'a self, _: &'a str, _: u16) -> DialFuture<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_attempt_times_out() {
    let started = Instant::now();
    let endpoint = "http://nowhere/v1".parse().expect("an address");
    let client = ModelClient::with_dial(Arc::new(SilentHost));
    let error = client
        .responses(&endpoint, &user_request("hi"), LIMITS)
        .await;
    let error = error.expect_err("no connection");
    assert!(matches!(error, CallError::Connect { .. }), "{error:?}");
    assert!(started.elapsed() <= LIMITS.connect + Duration::from_millis(5));
}
