//! A command with endless output costs the server no memory and blocks no client.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{answer, exec};
use crate::support::request;
use crate::support::server::TestServer;

/// The variable in which `prove` sets how many seconds the command writes.
const SECONDS: &str = "RADDLE_FLOOD_SECONDS";

/// The maximum growth of the server's memory.
const GROWTH_BYTES_MAX: u64 = 10 << 20;

/// The maximum time for the response to a termination. The target is 100 ms, which `prove` checks;
/// a test allows more, since the machine may be busy.
const ANSWER_MAX: Duration = Duration::from_secs(1);
const ANSWER_MAX_PROVED: Duration = Duration::from_millis(100);

fn flood(more: Value) {
    let proved = std::env::var(SECONDS).ok();
    let seconds = proved
        .as_deref()
        .map_or(2, |text| text.parse().expect("a number"));
    let answer_max = if proved.is_some() {
        ANSWER_MAX_PROVED
    } else {
        ANSWER_MAX
    };
    let server =
        TestServer::start_measured(&["--listen", "ws://127.0.0.1:0", "--insecure-loopback"]);
    let mut client = server.client();
    client.send(&exec("warm", "echo", json!({})));
    assert_eq!(answer(&mut client)["id"], "warm");
    let before = server.memory("VmRSS");
    server.forget_peak();

    client.send(&exec("run", "yes", more.clone()));
    let begun = Instant::now();
    let mut deltas = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        // Without deltas this passes the time.
        client.send(&request("beat", "account/read", json!({})));
        while client.receive().get("id").is_none() {
            deltas += 1;
        }
    }
    let params = json!({ "processId": "p" });
    let sent_at = Instant::now();
    client.send(&request("end", "command/exec/terminate", params));
    assert_eq!(answer(&mut client)["id"], "end");
    let answered = sent_at.elapsed();
    assert_eq!(answer(&mut client)["id"], "run");
    let grown = server.memory("VmHWM").saturating_sub(before);
    eprintln!(
        "figure: {seconds} s, {deltas} deltas: {grown} bytes more at most; ended in {answered:?}"
    );
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more than {before}");
    assert!(answered < answer_max, "answered after {answered:?}");
    assert_eq!(deltas > 0, more["streamStdoutStderr"] == true);
}

#[test]
fn flood_with_deltas() {
    flood(json!({ "processId": "p", "streamStdoutStderr": true, "disableOutputCap": true }));
}

#[test]
fn flood_without_deltas() {
    flood(json!({ "processId": "p" }));
}
