//! `review/start`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("review/start").await;
}
