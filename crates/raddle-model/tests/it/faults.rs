use std::time::Duration;

use raddle_model::{CallError, ModelClient, VendorFault, WireFormat};
use tokio::time::Instant;

use crate::support::{LIMITS, Vendor, user_request};

/// Returns the kind of an error in a word, whether a retry may succeed, and the delay.
fn outcome(error: &CallError) -> (String, bool, Option<u64>) {
    let kind = match error {
        CallError::Connect { .. } => "connect".to_owned(),
        CallError::Untrusted { .. } => "untrusted".to_owned(),
        CallError::BrokeOff(_) => "broke off".to_owned(),
        CallError::Silent { .. } => "silent".to_owned(),
        CallError::TooLong { .. } => "too long".to_owned(),
        CallError::Malformed(_) => "malformed".to_owned(),
        CallError::Vendor(error) => format!("{:?}", error.fault),
    };
    let wait = error.retry_after().map(|it| it.as_secs());
    (kind, error.is_transient(), wait)
}

/// Each fault: the marker, the kind of the error, whether to retry, and after how many seconds.
const FAULTS: &[(&str, &str, bool, Option<u64>)] = &[
    ("stall", "silent", true, None),
    ("text n=3 stall", "silent", true, None),
    ("mute", "silent", true, None),
    ("keep-alive", "silent", true, None),
    ("text n=3 keep-alive", "silent", true, None),
    ("cut", "broke off", true, None),
    ("text n=3 cut", "broke off", true, None),
    ("reset", "broke off", true, None),
    ("hang-up", "connect", true, None),
    ("empty", "broke off", true, None),
    ("garbage", "malformed", false, None),
    ("text n=3 garbage", "malformed", false, None),
    ("content-type", "malformed", false, None),
    ("429", "RateLimit", true, None),
    ("429 retry_after=7", "RateLimit", true, Some(7)),
    ("text n=3 429 retry_after=7", "RateLimit", true, Some(7)),
    ("500", "Internal", true, None),
    ("text n=3 500", "Internal", true, None),
    ("529", "Overloaded", true, None),
    ("529 retry_after=3", "Overloaded", true, Some(3)),
    ("context", "ContextFull", false, None),
    ("text n=3 context", "ContextFull", false, None),
    ("refused", "Unauthorized", false, None),
    ("unauthorized", "Unauthorized", false, None),
    ("quota", "Quota", false, None),
    ("text n=3 incomplete", "CutShort", false, None),
    ("text n=3 filtered", "Policy", false, None),
];

#[tokio::test(start_paused = true)]
async fn every_fault_ends_typed_and_in_time() {
    for wire in WireFormat::ALL {
        let vendor = Vendor::in_memory("").on(wire);
        for (steps, kind, transient, wait) in FAULTS {
            for _ in 0..25 {
                let started = Instant::now();
                let error = vendor.events(&format!("MOCK {steps}")).await;
                let error = error.expect_err(steps);
                let expected = ((*kind).to_owned(), *transient, *wait);
                assert_eq!(outcome(&error), expected, "{wire:?} {steps}: {error}");
                let limit = LIMITS.idle + Duration::from_secs(1);
                let elapsed = started.elapsed();
                assert!(elapsed <= limit, "{wire:?} {steps}: {elapsed:?}");
            }
        }
    }
}

#[tokio::test]
async fn the_same_faults_come_over_tcp() {
    let vendor = Vendor::listen().await;
    // The silent ones need a paused clock.
    let quick = FAULTS.iter().filter(|(_, kind, ..)| *kind != "silent");
    for (steps, kind, transient, wait) in quick {
        let error = vendor.events(&format!("MOCK {steps}")).await;
        let error = error.expect_err(steps);
        let expected = ((*kind).to_owned(), *transient, *wait);
        assert_eq!(outcome(&error), expected, "{steps}: {error}");
    }
}

#[tokio::test]
async fn a_refused_connection_names_its_address() {
    let vendor = Vendor::listen().await;
    let endpoint = vendor.endpoint.clone();
    let base_url = vendor.server.base_url().to_owned();
    drop(vendor);
    let error = loop {
        // The port is free once the server's task has ended.
        match ModelClient::new()
            .responses(&endpoint, &user_request("hi"), LIMITS)
            .await
        {
            Err(error) => break error,
            Ok(_) => tokio::task::yield_now().await,
        }
    };
    let CallError::Connect { address, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*address, format!("{base_url}/responses"));
    assert!(error.is_before_answer());
}

#[tokio::test(start_paused = true)]
async fn events_before_a_fault_are_delivered() {
    let vendor = Vendor::in_memory("");
    for fault in ["cut", "garbage", "stall", "500"] {
        let mut stream = vendor
            .ask(&format!("MOCK text say=\"half a sentence\" {fault}"))
            .await
            .expect("an answer");
        let mut events = Vec::new();
        let error = loop {
            match stream.next().await {
                Ok(Some(event)) => events.push(event),
                Ok(None) => panic!("{fault}: the answer ended well"),
                Err(error) => break error,
            }
        };
        assert_eq!(
            crate::support::streamed_text(&events),
            "half a sentence",
            "{fault}"
        );
        assert!(!error.is_before_answer(), "{fault}");
        let after = stream.next().await;
        assert!(!matches!(after, Ok(Some(_))), "{fault}: {after:?}");
    }
}

#[test]
fn errors_that_no_retry_fixes_are_not_transient() {
    let vendor = |fault| {
        CallError::Vendor(Box::new(raddle_model::VendorError {
            fault,
            status: Some(400),
            message: String::new(),
            retry_after: None,
        }))
    };
    for fault in [
        VendorFault::NotFound,
        VendorFault::BadRequest,
        VendorFault::Other,
    ] {
        assert!(!vendor(fault).is_transient(), "{fault:?}");
    }
}
