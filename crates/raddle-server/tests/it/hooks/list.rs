//! `hooks/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("hooks/list").await;
}
