//! `command/exec/write`

#[tokio::test]
async fn conversation() {
    crate::client::play("command/exec/write").await;
}
