//! What is in the server's environment stays there.

use serde_json::json;

use super::{answer, exec};
use crate::support::server::TestServer;

const CANARIES: usize = 50;

/// Starts a server with canaries in its environment. As root it gives up what root may do beyond others,
/// so that what is closed to a user's processes is closed to its own.
fn with_canaries(more: &str) -> TestServer {
    let before = format!(
        "for i in $(seq {CANARIES}); do export CANARY_$i=secret-$i; done; {more}; \
         if [ $(id -u) = 0 ]; then \
         exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" app-server \"$@\"; fi"
    );
    let door = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];
    TestServer::start_under(&format!("export PATH=/usr/bin:/bin; {before}"), &door)
}

/// How many canaries a script finds.
fn found(server: &TestServer, script: &str) -> usize {
    let mut client = server.client();
    client.send(&exec("run", script, json!({})));
    let ran = answer(&mut client);
    assert_eq!(ran["result"]["exitCode"], 0, "{ran}");
    let stdout = ran["result"]["stdout"].as_str().expect("text");
    stdout.matches("secret-").count()
}

const OWN: &str = "env";
/// Every process that lets itself be looked at.
const EVERYONES: &str =
    "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a secret-; :";

#[test]
fn commands_find_no_secrets_in_their_environment_or_the_servers() {
    let server = with_canaries("unset RADDLE_DUMPABLE");
    assert_eq!(found(&server, OWN), 0);
    assert_eq!(found(&server, EVERYONES), 0);
    server.stop();
}

#[test]
fn a_server_that_may_be_debugged_can_be_looked_at() {
    let server = with_canaries(":");
    assert_eq!(found(&server, OWN), 0);
    assert_eq!(found(&server, EVERYONES), CANARIES);
    server.stop();
}
