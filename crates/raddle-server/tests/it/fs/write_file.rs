//! `fs/writeFile`

use serde_json::json;

use crate::client::{TestClient, base64};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/write_file").await;
}

#[tokio::test]
async fn a_large_file_of_any_bytes_is_written() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = TestClient::connect(&mut server).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(2 << 20).collect();
    let params = json!({"path": stage.path("file"), "dataBase64": base64(&bytes)});
    assert_eq!(client.ask("fs/writeFile", params).await, Ok(json!({})));
    assert!(std::fs::read(stage.path("file")).unwrap() == bytes);
}
