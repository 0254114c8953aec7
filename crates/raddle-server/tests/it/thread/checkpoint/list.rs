//! `thread/checkpoint/list`.

use std::fs;

use raddle_rpc::ConnectionLimits;
use serde_json::json;

use crate::client::{TestClient, answer, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("thread/checkpoint/list").await;
}

/// The same holds for the other methods that read checkpoints.
#[tokio::test]
async fn an_observer_reads_checkpoints_of_threads_that_it_follows() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    fs::write(harness.workspace.join("a.txt"), "new\n").unwrap();
    harness.give_checkpoint("c1", Some("t1"), &[("a.txt", None)]);
    let capabilities = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
    let limits = ConnectionLimits::default();
    let mut observer = TestClient::connect_with(&mut server, limits, capabilities).await;
    for follows in [false, true] {
        if follows {
            let resumed = answer(&mut observer, "thread/resume", json!({"threadId": thread}));
            resumed.await.unwrap();
        }
        for (method, more) in [
            ("thread/checkpoint/list", json!({})),
            ("thread/checkpoint/preview", json!({"checkpointId": "c1"})),
            ("thread/diff/read", json!({})),
            ("turn/diff/read", json!({"turnId": "t1"})),
        ] {
            let mut params = more;
            params["threadId"] = thread.clone();
            let read = answer(&mut observer, method, params).await;
            let info = read.err().map(|it| it["data"]["errorInfo"].clone());
            let expected = (!follows).then(|| json!("observer"));
            assert_eq!(info, expected, "{method}");
        }
    }
}
