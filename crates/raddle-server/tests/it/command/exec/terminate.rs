//! `command/exec/terminate`

#[tokio::test]
async fn conversation() {
    crate::client::play("command/exec/terminate").await;
}
