//! `account/login/start`

#[tokio::test]
async fn conversation() {
    crate::client::play("account/login/start").await;
}
