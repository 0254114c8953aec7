//! `thread/goal/set`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/goal/set").await;
}
