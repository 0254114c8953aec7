//! `turn/interrupt`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("turn/interrupt").await;
}
