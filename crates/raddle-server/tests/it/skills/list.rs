//! `skills/list`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("skills/list").await;
}

#[tokio::test]
async fn a_skill_that_is_too_long_is_listed_as_an_error() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir_all(harness.home.join("skills/long")).unwrap();
    let text = format!("---\ndescription: x\n---\n{}", "x".repeat(256 << 10));
    std::fs::write(harness.home.join("skills/long/SKILL.md"), text).unwrap();
    let listed = client
        .ask("skills/list", json!({"cwds": [harness.workspace]}))
        .await
        .unwrap();
    assert_eq!(listed["data"][0]["skills"], json!([]));
    assert_eq!(
        listed["data"][0]["errors"][0]["message"],
        "larger than 262144 bytes"
    );
}

#[tokio::test]
async fn folders_are_limited_and_listed_once() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let too_many = vec![harness.path("w"); 65];
    let refused = client.ask("skills/list", json!({"cwds": too_many})).await;
    let refused = refused.expect_err("too many");
    assert_eq!(refused["code"], -32600);
    assert_eq!(refused["message"], "cwds has more than 64 folders");

    let mut cwds = vec![harness.path("w"); 63];
    cwds.push(harness.path("v"));
    let listed = client.ask("skills/list", json!({"cwds": cwds})).await;
    let listed = listed.expect("a list");
    let entries: Vec<_> = listed["data"].as_array().unwrap().iter().collect();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["cwd"], harness.path("w"));
    assert_eq!(entries[1]["cwd"], harness.path("v"));
}

#[tokio::test]
async fn a_path_that_is_too_long_is_rejected_at_once() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for (method, params) in [
        ("skills/list", json!({"cwds": ["/a".repeat(1 << 20)]})),
        (
            "fuzzyFileSearch",
            json!({"query": "x", "roots": ["/a".repeat(1 << 20)]}),
        ),
        (
            "fs/watch",
            json!({"watchId": "w", "path": "/a".repeat(1 << 20)}),
        ),
        (
            "fs/copy",
            json!({"sourcePath": "/", "destinationPath": "/a".repeat(1 << 20), "recursive": true}),
        ),
    ] {
        let refused = client.ask(method, params).await.expect_err(method);
        assert_eq!(refused["code"], -32600, "{method}: {refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains("a path may have 4096 bytes"), "{message}");
    }
}
