//! `thread/rollback`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/rollback").await;
}
