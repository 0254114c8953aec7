//! `turn/diff/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("turn/diff/read").await;
}
