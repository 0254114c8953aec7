//! `config/batchWrite`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("config/batch_write").await;
}

#[tokio::test]
async fn the_file_is_written_once_or_not_at_all() {
    let harness = Harness::new();
    let before = "# Mine.\nmodel = \"a\" # why\n";
    std::fs::write(harness.config(), before).unwrap();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let edit = |key: &str, value: &str| json!({"keyPath": key, "value": value, "mergeStrategy": "replace"});

    let refused = client
        .ask(
            "config/batchWrite",
            json!({"edits": [edit("model", "b"), edit("", "x")]}),
        )
        .await;
    assert_eq!(
        refused.unwrap_err()["data"]["config_write_error_code"],
        "configValidationError"
    );
    assert_eq!(std::fs::read_to_string(harness.config()).unwrap(), before);

    let edits = json!({"edits": [edit("model", "b"), edit("model", "c"), edit("new.key", "x")]});
    client
        .ask("config/batchWrite", edits)
        .await
        .expect("a write");
    let after = "# Mine.\nmodel = \"c\" # why\n\n[new]\nkey = \"x\"\n";
    assert_eq!(std::fs::read_to_string(harness.config()).unwrap(), after);
}
