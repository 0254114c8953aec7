//! `command/exec/resize`

#[tokio::test]
async fn conversation() {
    crate::client::play("command/exec/resize").await;
}
