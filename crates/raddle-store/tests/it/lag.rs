//! Lag of the search index.

use raddle_core::ports::{ListQuery, Pages};
use raddle_store::Archive;

use crate::makers::local;
use crate::records::{ThreadScript, item_started, released, renamed};

/// The index is not updated for events without text, so no search waits for them.
#[tokio::test]
async fn events_without_text_are_no_lag() {
    let folder = tempfile::tempdir().unwrap();
    let journal = local(folder.path());
    let archive = Archive::open(folder.path()).unwrap().unwrap();
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    assert_eq!(archive.lag().unwrap().threads(), 0);
    script.append(&journal, vec![renamed("a name")]).await;
    script.append(&journal, vec![item_started("t", "i")]).await;
    let mut lag = archive.lag().unwrap();
    while lag.threads() > 0 {
        let text = "a name".to_owned();
        journal.search(text, ListQuery::default()).await.unwrap();
        lag.refresh().unwrap();
    }
    script.append(&journal, vec![released()]).await;
    assert_eq!(archive.lag().unwrap().threads(), 0);
    let page = journal.search("a name".to_owned(), ListQuery::default());
    assert_eq!(page.await.unwrap().entries.len(), 1);
}
