//! `account/read`

#[tokio::test]
async fn conversation() {
    crate::client::play("account/read").await;
}
