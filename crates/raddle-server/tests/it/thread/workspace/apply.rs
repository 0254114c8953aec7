//! `thread/workspace/apply`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/workspace/apply").await;
}
