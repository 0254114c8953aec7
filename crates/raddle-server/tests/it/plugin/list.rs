//! `plugin/list`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("plugin/list").await;
}
