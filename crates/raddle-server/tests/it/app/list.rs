//! `app/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("app/list").await;
}
