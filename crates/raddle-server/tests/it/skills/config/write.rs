//! `skills/config/write`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("skills/config/write").await;
}
