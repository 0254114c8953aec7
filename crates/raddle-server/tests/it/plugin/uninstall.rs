//! `plugin/uninstall`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("plugin/uninstall").await;
}
