//! `process/spawn`

use serde_json::json;

use crate::client::TestClient;
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("process/spawn").await;
}

#[tokio::test]
async fn more_than_is_kept_is_cut_off_and_said() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect_boldly(&mut server).await;
    let script = "head -c 17000000 /dev/zero | tr '\\0' x; echo done >&2";
    let params = json!({
        "command": ["sh", "-c", script], "cwd": "/", "processHandle": "p", "outputBytesCap": null,
    });
    client.ask("process/spawn", params).await.expect("it runs");
    let exited = client.next().await["params"].take();
    assert_eq!(exited["exitCode"], 0);
    assert_eq!(exited["stdoutCapReached"], true);
    assert_eq!(exited["stderr"], "done\n");
    let kept = exited["stdout"].as_str().unwrap().len();
    assert!(
        ((16 << 20) - (64 << 10)..=16 << 20).contains(&kept),
        "{kept}"
    );
}
