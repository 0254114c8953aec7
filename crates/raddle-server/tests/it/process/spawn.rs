//! `process/spawn`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("process/spawn").await;
}

#[tokio::test]
async fn output_beyond_the_limit_is_truncated_and_reported() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let script = "head -c 17000000 /dev/zero | tr '\\0' x; echo done >&2";
    let params = json!({
        "command": ["sh", "-c", script], "cwd": "/", "processHandle": "p", "outputBytesCap": null,
    });
    client.ask("process/spawn", params).await.expect("it runs");
    let exited = client.next().await["params"].take();
    assert_eq!(exited["exitCode"], 0);
    assert_eq!(exited["stdoutCapReached"], true);
    assert_eq!(exited["stderr"], "done\n");
    let stored_bytes = exited["stdout"].as_str().unwrap().len();
    assert!(
        ((16 << 20) - (64 << 10)..=16 << 20).contains(&stored_bytes),
        "{stored_bytes}"
    );
}
