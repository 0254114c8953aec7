//! `fuzzyFileSearch/sessionStart`.

use crate::client::play;

#[tokio::test]
async fn conversation() {
    play("fuzzy_file_search/session_start").await;
}
