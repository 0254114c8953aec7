//! `modelProvider/capabilities/read`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("model_provider/capabilities/read").await;
}
