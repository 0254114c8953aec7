//! `account/login/cancel`

#[tokio::test]
async fn conversation() {
    crate::client::play("account/login/cancel").await;
}
