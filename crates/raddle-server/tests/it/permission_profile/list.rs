//! `permissionProfile/list`

#[tokio::test]
async fn conversation() {
    crate::client::play("permission_profile/list").await;
}
