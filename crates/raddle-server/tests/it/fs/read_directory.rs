//! `fs/readDirectory`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/read_directory").await;
}

#[tokio::test]
async fn a_link_counts_as_what_it_points_to() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for (link, target) in [("a", "/"), ("b", "/dev/null"), ("c", "nowhere")] {
        std::os::unix::fs::symlink(target, harness.path(link)).unwrap();
    }
    let read = client
        .ask("fs/readDirectory", json!({"path": harness.workspace}))
        .await;
    let entry = |name: &str, is_directory: bool| json!({"fileName": name, "isDirectory": is_directory, "isFile": false});
    assert_eq!(
        read,
        Ok(json!({"entries": [entry("a", true), entry("b", false), entry("c", false)]}))
    );
}
