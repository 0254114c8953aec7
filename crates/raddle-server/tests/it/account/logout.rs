//! `account/logout`

#[tokio::test]
async fn conversation() {
    crate::client::play("account/logout").await;
}
