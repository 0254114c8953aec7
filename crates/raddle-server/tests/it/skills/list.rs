//! `skills/list`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("skills/list").await;
}

#[tokio::test]
async fn a_skill_that_is_too_long_is_told_as_an_error() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir_all(stage.home.join("skills/long")).unwrap();
    let text = format!("---\ndescription: x\n---\n{}", "x".repeat(256 << 10));
    std::fs::write(stage.home.join("skills/long/SKILL.md"), text).unwrap();
    let listed = client
        .ask("skills/list", json!({"cwds": [stage.workspace]}))
        .await
        .unwrap();
    assert_eq!(listed["data"][0]["skills"], json!([]));
    assert_eq!(
        listed["data"][0]["errors"][0]["message"],
        "larger than 262144 bytes"
    );
}

#[tokio::test]
async fn more_folders_than_allowed_are_refused_and_a_repeated_one_is_told_once() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let too_many = vec![stage.path("w"); 65];
    let refused = client.ask("skills/list", json!({"cwds": too_many})).await;
    let refused = refused.expect_err("too many");
    assert_eq!(refused["code"], -32600);
    assert_eq!(refused["message"], "cwds has more than 64 folders");

    let mut cwds = vec![stage.path("w"); 63];
    cwds.push(stage.path("v"));
    let listed = client.ask("skills/list", json!({"cwds": cwds})).await;
    let listed = listed.expect("a list");
    let told: Vec<_> = listed["data"].as_array().unwrap().iter().collect();
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["cwd"], stage.path("w"));
    assert_eq!(told[1]["cwd"], stage.path("v"));
}

#[tokio::test]
async fn a_folder_whose_path_no_system_takes_is_refused_at_once() {
    let stage = Stage::new();
    let mut server = stage.open();
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
