//! Unruly programs leave no process behind when they are terminated, when their client disconnects,
//! and when the server is killed.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{answer, exec};
use crate::support::request;
use crate::support::server::TestServer;
use crate::unruly::{ALL, MARK, UnrulyProgram, wait_until_gone, wait_until_started};

/// The variable in which `prove` sets the number of rounds; by default all programs end in all
/// ways.
const ROUNDS: &str = "RADDLE_LEFT_BEHIND_ROUNDS";

#[derive(Clone, Copy, Debug)]
enum EndCause {
    Terminated,
    ClientLeaves,
    ServerKilled,
}

const END_CAUSES: [EndCause; 3] = [
    EndCause::Terminated,
    EndCause::ClientLeaves,
    EndCause::ServerKilled,
];

#[test]
fn nothing_is_left_behind() {
    let all = ALL.len() * END_CAUSES.len();
    let rounds = std::env::var(ROUNDS).map_or(all, |text| text.parse().expect("a number"));
    let mut slowest = (Duration::ZERO, "");
    for round in 0..rounds {
        let unruly = ALL[round % ALL.len()];
        let cause = END_CAUSES[round / ALL.len() % END_CAUSES.len()];
        slowest = slowest.max((took(round, unruly, cause), unruly.name));
    }
    let (time, name) = slowest;
    eprintln!("figure: {rounds} rounds; in the slowest, {name}, nothing was left after {time:?}");
}

/// Returns the time until no process was left.
fn took(round: usize, unruly: UnrulyProgram, cause: EndCause) -> Duration {
    let server = TestServer::open_websocket(&[]);
    let mut client = server.client();
    let mark = format!("{}-{round}", std::process::id());
    let more = json!({ "processId": "p", "env": { MARK: mark } });
    client.send(&exec("run", unruly.script, more));
    wait_until_started(unruly, &mark);

    let name = format!("{} ({cause:?})", unruly.name);
    let begun = Instant::now();
    match cause {
        EndCause::Terminated => {
            let params = json!({ "processId": "p" });
            client.send(&request("end", "command/exec/terminate", params));
            assert_eq!(answer(&mut client)["id"], "end");
            let response = answer(&mut client);
            assert_eq!(response["id"], "run");
            let code = response["result"]["exitCode"]
                .as_i64()
                .expect("an exit code");
            assert!([137, 143].contains(&code), "{name}: {response}");
        }
        EndCause::ClientLeaves => client.disconnect(),
        EndCause::ServerKilled => drop(server),
    }
    wait_until_gone(&name, &mark, begun)
}
