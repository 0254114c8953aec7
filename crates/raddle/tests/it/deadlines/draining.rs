//! Connections that are finishing.

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

/// What a client sends while its last requests are finished is not kept for nobody to read.
#[test]
fn a_connection_that_finishes_takes_nothing_in_and_answers_all() {
    let home = TempDir::new().expect("a home");
    let mut options = options(&home);
    // So long that it is not this that ends the connection.
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
        // By now the slow one is running.
        assert_eq!(receive(&mut client).await["id"], "quick");

        let drained = tokio::spawn(async move { server.drain().await });
        let unheard = timeout(TEST_TIMEOUT, client.outgoing.when_gone()).await;
        unheard.expect("it is still listening");
        drop(slow);
        ConfigWriteLock::check(&receive(&mut client).await);
        drained.await.expect("no panic");
    });
}
