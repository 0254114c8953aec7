//! A command that writes as fast as it can costs the server no memory and holds up nobody.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{answer, exec};
use crate::support::request;
use crate::support::server::TestServer;

/// How many seconds it writes, if not what `prove` says.
const SECONDS: &str = "RADDLE_FLOOD_SECONDS";

/// How much more memory the server may ever hold than before.
const GROWTH_BYTES_MAX: u64 = 10 << 20;

/// How long an end may take to be answered. The machine may be busy, so a test allows more than the
/// 100 ms that are meant; `prove` does not.
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
    let mut told = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        // Without deltas this is what passes the time.
        client.send(&request("beat", "account/read", json!({})));
        while client.receive().get("id").is_none() {
            told += 1;
        }
    }
    let params = json!({ "processId": "p" });
    let asked = Instant::now();
    client.send(&request("end", "command/exec/terminate", params));
    assert_eq!(answer(&mut client)["id"], "end");
    let answered = asked.elapsed();
    assert_eq!(answer(&mut client)["id"], "run");
    let grown = server.memory("VmHWM").saturating_sub(before);
    eprintln!(
        "figure: {seconds} s, {told} deltas: {grown} bytes more at most; ended in {answered:?}"
    );
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more than {before}");
    assert!(answered < answer_max, "answered after {answered:?}");
    assert_eq!(told > 0, more["streamStdoutStderr"] == true);
}

#[test]
fn flood_that_is_told() {
    flood(json!({ "processId": "p", "streamStdoutStderr": true, "disableOutputCap": true }));
}

#[test]
fn flood_that_is_thrown_away() {
    flood(json!({ "processId": "p" }));
}
