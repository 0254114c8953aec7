//! `thread/revert`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/revert").await;
}
