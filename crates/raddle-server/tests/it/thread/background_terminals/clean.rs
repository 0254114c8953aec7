//! `thread/backgroundTerminals/clean`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("thread/background_terminals/clean").await;
}
