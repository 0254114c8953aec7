//! `account/rateLimits/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("account/rate_limits/read").await;
}
