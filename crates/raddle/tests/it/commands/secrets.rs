//! The server's environment is hidden from commands.

use serde_json::json;

use super::{answer, exec};
use crate::support::server::TestServer;

const CANARIES: usize = 50;

/// Starts a server with canaries in its environment. As root it drops its capabilities, so that its
/// commands have no more access than those of a user.
fn with_canaries(more: &str) -> TestServer {
    let before = format!(
        "for i in $(seq {CANARIES}); do export CANARY_$i=secret-$i; done; {more}; \
         if [ $(id -u) = 0 ]; then \
         exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" app-server \"$@\"; fi"
    );
    let listen_args = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];
    TestServer::start_under(
        &format!("export PATH=/usr/bin:/bin; {before}"),
        &listen_args,
    )
}

/// Returns how many canaries a script finds.
fn count_canaries(server: &TestServer, script: &str) -> usize {
    let mut client = server.client();
    client.send(&exec("run", script, json!({})));
    let response = answer(&mut client);
    assert_eq!(response["result"]["exitCode"], 0, "{response}");
    let stdout = response["result"]["stdout"].as_str().expect("text");
    stdout.matches("secret-").count()
}

const OWN: &str = "env";
/// Every process with a readable environment.
const EVERYONES: &str =
    "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a secret-; :";

#[test]
fn commands_find_no_secrets_in_their_environment_or_the_servers() {
    let server = with_canaries("unset RADDLE_DUMPABLE");
    assert_eq!(count_canaries(&server, OWN), 0);
    assert_eq!(count_canaries(&server, EVERYONES), 0);
    server.stop();
}

#[test]
fn a_server_that_may_be_debugged_can_be_looked_at() {
    let server = with_canaries(":");
    assert_eq!(count_canaries(&server, OWN), 0);
    assert_eq!(count_canaries(&server, EVERYONES), CANARIES);
    server.stop();
}
