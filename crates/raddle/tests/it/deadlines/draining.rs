//! Connections that are draining.

use raddle_rpc::{Connection, Frame, memory};
use serde_json::Value;

use super::*;
use crate::support::config_lock::ConfigWriteLock;
use crate::support::initialize;

async fn receive(client: &mut Connection) -> Value {
    let next = timeout(TEST_TIMEOUT, client.incoming.next()).await;
    match next.expect("in time") {
        Some(Frame::Message(answer)) => serde_json::from_slice(&answer).expect("JSON"),
        other => panic!("expected an answer, got {other:?}"),
    }
}

/// Messages that arrive while the last requests finish are not queued.
#[test]
fn a_draining_connection_reads_nothing_and_answers_all() {
    let home = TempDir::new().expect("a home");
    let mut options = options(&home);
    // Too long to be the reason for the end of the connection.
    options.drain = 2 * TEST_TIMEOUT;
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut server = Server::open(options, crate::script::threads(&[])).expect("a server");
        let (ours, mut client) = memory(ConnectionLimits::default());
        let _ended = server.serve(ours);
        let slow = ConfigWriteLock::new(home.path());
        client.outgoing.send(initialize(1).into());
        client
            .outgoing
            .send(ConfigWriteLock::request("slow").into());
        client
            .outgoing
            .send(request("quick", "account/read", json!({})).into());
        assert_eq!(receive(&mut client).await["id"], 1);
        // By now the slow request is running.
        assert_eq!(receive(&mut client).await["id"], "quick");

        let drained = tokio::spawn(async move { server.drain().await });
        let stopped = timeout(TEST_TIMEOUT, client.outgoing.when_gone()).await;
        stopped.expect("it is still listening");
        drop(slow);
        ConfigWriteLock::check(&receive(&mut client).await);
        drained.await.expect("no panic");
    });
}
