//! `skills/list`

use serde_json::json;

use crate::client::Client;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("skills/list").await;
}

#[tokio::test]
async fn a_skill_that_is_too_long_is_told_as_an_error() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
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
