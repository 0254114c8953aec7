//! `fs/unwatch`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/unwatch").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_told_after_the_answer() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let watch = |id: &str| json!({"watchId": id, "path": stage.workspace});
    client
        .ask("fs/watch", watch("other"))
        .await
        .expect("a watch");
    for round in 0..10 {
        let id = client.request("fs/watch", watch("ending"));
        while client.next().await["id"] != id {}
        // This change is still being gathered when the watch ends.
        std::fs::create_dir(stage.path(&format!("before{round}"))).unwrap();
        let id = client.request("fs/unwatch", json!({"watchId": "ending"}));
        while client.next().await["id"] != id {}
        let after = stage.path(&format!("after{round}"));
        std::fs::create_dir(&after).unwrap();
        loop {
            let told = client.next().await["params"].take();
            assert_eq!(told["watchId"], "other", "{told}");
            if told["changedPaths"]
                .as_array()
                .unwrap()
                .contains(&json!(after))
            {
                break;
            }
        }
    }
}
