//! `process/kill`

#[tokio::test]
async fn conversation() {
    crate::client::play("process/kill").await;
}
