//! `hooks/list`.

use serde_json::json;

use crate::client::{TestClient, answer, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("hooks/list").await;
}

/// A mistake in the user's file does not switch off a hook of the administrator.
#[tokio::test]
async fn hooks_stay_in_force_while_a_file_is_unusable() {
    let harness = Harness::new();
    let hooks = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]});
    let file = harness.system_config().with_file_name("hooks.json");
    std::fs::write(file, json!({ "hooks": hooks }).to_string()).expect("hooks");
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let listed = answer(&mut client, "hooks/list", json!({"cwds": ["/"]})).await;
    let entry = listed.expect("hooks")["data"][0].clone();
    assert_eq!(entry["hooks"][0]["trustStatus"], "managed", "{entry}");
    assert_eq!(entry["errors"], json!([]), "{entry}");

    std::fs::write(harness.config(), "model = ").expect("a file");
    let listed = answer(&mut client, "hooks/list", json!({"cwds": ["/"]})).await;
    let broken = listed.expect("hooks")["data"][0].clone();
    assert_eq!(broken["hooks"], entry["hooks"], "{broken}");
    let path = harness.config().display().to_string();
    assert_eq!(broken["errors"][0]["path"], path, "{broken}");
}
