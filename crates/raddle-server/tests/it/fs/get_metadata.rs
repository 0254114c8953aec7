//! `fs/getMetadata`

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/get_metadata").await;
}

#[tokio::test]
async fn links_are_followed_and_times_are_reported() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let file = std::fs::File::create(harness.path("file")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(1_234_567_890_123))
        .unwrap();
    std::os::unix::fs::symlink("file", harness.path("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", harness.path("dangling")).unwrap();

    let link = client
        .ask("fs/getMetadata", json!({"path": harness.path("link")}))
        .await
        .unwrap();
    assert_eq!(link["isSymlink"], true);
    assert_eq!(link["isFile"], true);
    assert_eq!(link["modifiedAtMs"], 1_234_567_890_123_i64);
    let dangling = client
        .ask("fs/getMetadata", json!({"path": harness.path("dangling")}))
        .await;
    assert_eq!(dangling.unwrap_err()["code"], -32603);
}
