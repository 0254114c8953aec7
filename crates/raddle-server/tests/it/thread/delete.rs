//! `thread/delete`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/delete").await;
}
