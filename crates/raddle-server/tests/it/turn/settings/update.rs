//! `turn/settings/update`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("turn/settings/update").await;
}
