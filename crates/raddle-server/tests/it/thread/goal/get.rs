//! `thread/goal/get`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/goal/get").await;
}
