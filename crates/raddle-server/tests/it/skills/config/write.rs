//! `skills/config/write`.

use raddle_rpc::ConnectionLimits;
use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("skills/config/write").await;
}

/// The administrator's entries apply beside the user's, and stay in their file.
#[tokio::test]
async fn entries_of_other_layers_are_not_copied() {
    let harness = Harness::new();
    let entry = "[[skills.config]]\nname = \"ship\"\nenabled = false\n";
    std::fs::write(harness.system_config(), entry).expect("a file");
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for (name, enabled) in [("tidy", false), ("ship", false), ("ship", true)] {
        let params = json!({"name": name, "enabled": enabled});
        let written = client.ask("skills/config/write", params).await;
        assert_eq!(written, Ok(json!({"effectiveEnabled": enabled})), "{name}");
        assert_eq!(client.next().await["method"], "skills/changed", "{name}");
        let text = std::fs::read_to_string(harness.config()).expect("a file");
        let has_ship = name == "ship";
        assert_eq!(text.contains("ship"), has_ship, "{text}");
    }
}

#[tokio::test]
async fn long_names_and_observers_are_rejected() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let params = json!({"name": "x".repeat(257), "enabled": false});
    let error = client.ask("skills/config/write", params).await;
    let message = "name has 257 bytes; it may have 256";
    assert_eq!(error.expect_err("too long")["message"], message);
    let capabilities = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
    let limits = ConnectionLimits::default();
    let mut observer = TestClient::connect_with(&mut server, limits, capabilities).await;
    let params = json!({"name": "tidy", "enabled": false});
    let error = observer.ask("skills/config/write", params).await;
    let error = error.expect_err("an observer");
    assert_eq!(error["data"]["errorInfo"], "observer");
    assert!(!harness.config().exists());
}
