//! The gate: the checks that every request passes before its handler runs.

#[tokio::test]
async fn conversation() {
    crate::client::play("gate").await;
}
