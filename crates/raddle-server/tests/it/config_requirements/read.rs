//! `configRequirements/read`

#[tokio::test]
async fn conversation() {
    crate::client::play("config_requirements/read").await;
}
