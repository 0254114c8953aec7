//! `plugin/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("plugin/read").await;
}
