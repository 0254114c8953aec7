//! `threadSection/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread_section/list").await;
}
