//! `fs/unwatch`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/unwatch").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_notification_follows_the_response() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let watch = |id: &str| json!({"watchId": id, "path": harness.workspace});
    client
        .ask("fs/watch", watch("other"))
        .await
        .expect("a watch");
    for round in 0..10 {
        let id = client.request("fs/watch", watch("ending"));
        while client.next().await["id"] != id {}
        // This change is still being collected when the watch ends.
        std::fs::create_dir(harness.path(&format!("before{round}"))).unwrap();
        let id = client.request("fs/unwatch", json!({"watchId": "ending"}));
        while client.next().await["id"] != id {}
        let after = harness.path(&format!("after{round}"));
        std::fs::create_dir(&after).unwrap();
        loop {
            let params = client.next().await["params"].take();
            assert_eq!(params["watchId"], "other", "{params}");
            if params["changedPaths"]
                .as_array()
                .unwrap()
                .contains(&json!(after))
            {
                break;
            }
        }
    }
}
