//! `process/writeStdin`

#[tokio::test]
async fn conversation() {
    crate::client::play("process/write_stdin").await;
}
