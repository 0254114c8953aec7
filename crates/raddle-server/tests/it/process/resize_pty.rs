//! `process/resizePty`

#[tokio::test]
async fn conversation() {
    crate::client::play("process/resize_pty").await;
}
