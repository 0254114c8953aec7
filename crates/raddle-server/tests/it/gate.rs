//! The gate: what every request passes before its method looks at it.

#[tokio::test]
async fn conversation() {
    crate::client::play("gate").await;
}
