//! `fuzzyFileSearch/sessionStop`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("fuzzy_file_search/session_stop").await;
}
