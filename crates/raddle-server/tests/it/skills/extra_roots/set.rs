//! `skills/extraRoots/set`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("skills/extra_roots/set").await;
}
