//! `fs/writeFile`

use serde_json::json;

use crate::client::{TestClient, base64};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/write_file").await;
}

#[tokio::test]
async fn a_large_file_of_any_bytes_is_written() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(2 << 20).collect();
    let params = json!({"path": harness.path("file"), "dataBase64": base64(&bytes)});
    assert_eq!(client.ask("fs/writeFile", params).await, Ok(json!({})));
    assert!(std::fs::read(harness.path("file")).unwrap() == bytes);
}
