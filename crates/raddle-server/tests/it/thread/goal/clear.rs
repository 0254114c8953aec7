//! `thread/goal/clear`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/goal/clear").await;
}
