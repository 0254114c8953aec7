//! `fs/createDirectory`

#[tokio::test]
async fn conversation() {
    crate::client::play("fs/create_directory").await;
}
