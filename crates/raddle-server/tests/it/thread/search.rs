//! `thread/search`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/search").await;
}
