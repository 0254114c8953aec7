//! `fs/readFile`

use serde_json::json;

use crate::client::{Client, base64};
use crate::player::Stage;

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/read_file").await;
}

#[tokio::test]
async fn any_bytes_come_back_as_they_are() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    std::fs::write(stage.path("file"), &bytes).unwrap();
    let read = client
        .ask("fs/readFile", json!({"path": stage.path("file")}))
        .await;
    assert_eq!(read, Ok(json!({"dataBase64": base64(&bytes)})));
}

#[tokio::test]
async fn a_device_without_end_is_refused() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    let read = client
        .ask("fs/readFile", json!({"path": "/dev/zero"}))
        .await;
    assert_eq!(
        read,
        Err(json!({"code": -32600, "message": "/dev/zero is larger than 67108864 bytes"}))
    );
}

#[tokio::test]
async fn a_link_is_followed() {
    let stage = Stage::new();
    let mut server = stage.open();
    let mut client = Client::connect(&mut server).await;
    std::fs::write(stage.path("file"), "hello").unwrap();
    std::os::unix::fs::symlink("file", stage.path("link")).unwrap();
    let read = client
        .ask("fs/readFile", json!({"path": stage.path("link")}))
        .await;
    assert_eq!(read, Ok(json!({"dataBase64": base64("hello")})));
}
