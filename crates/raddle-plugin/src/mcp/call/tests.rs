use rmcp::model::NumberOrString;

use super::*;

fn token(number: i64) -> ProgressToken {
    ProgressToken(NumberOrString::Number(number))
}

fn progress(number: i64, position: f64, message: &str) -> ProgressNotificationParam {
    ProgressNotificationParam::new(token(number), position).with_message(message)
}

/// Returns the message that waits for the call, if there is one.
fn waiting(receiver: &mut watch::Receiver<CallProgress>) -> Option<String> {
    let is_new = receiver.has_changed().expect("an open call");
    is_new.then(|| receiver.borrow_and_update().text.clone())
}

#[test]
fn progress_reaches_the_call_of_its_token_alone() {
    let calls = Arc::new(OpenCalls::default());
    let (first, mut of_first) = calls.open(token(1));
    let (_second, mut of_second) = calls.open(token(2));
    calls.report(&progress(3, 1.0, "forged"));
    calls.report(&progress(1, 1.0, "\u{1b}[31mhalf\u{1b}[0m"));
    assert_eq!(waiting(&mut of_first).as_deref(), Some("half"));
    assert_eq!(waiting(&mut of_second), None);
    drop(first);
    calls.report(&progress(1, 2.0, "too late"));
    let open = calls.0.lock().expect("a lock").len();
    assert_eq!((open, waiting(&mut of_second)), (1, None));
}

#[test]
fn the_newest_progress_is_kept() {
    let calls = Arc::new(OpenCalls::default());
    let (_call, mut receiver) = calls.open(token(1));
    for (position, message) in [(1.0, "one"), (3.0, "three"), (2.0, "two"), (4.0, "")] {
        calls.report(&progress(1, position, message));
    }
    assert_eq!(waiting(&mut receiver).as_deref(), Some("three"));
    let mut silent = ProgressNotificationParam::new(token(1), 4.0);
    silent.total = Some(8.0);
    calls.report(&silent);
    assert_eq!(waiting(&mut receiver).as_deref(), Some("4 of 8"));
    calls.report(&progress(1, 5.0, &"x".repeat(1 << 20)));
    let length = waiting(&mut receiver).map(|it| it.len());
    assert_eq!(length, Some(PROGRESS_BYTES_MAX));
}
