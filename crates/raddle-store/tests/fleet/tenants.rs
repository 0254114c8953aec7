//! Tenants do not see each other.

use raddle_core::Class;
use raddle_core::ports::{AppendError, Blobs, Journal, ListScope, ReadError};
use store_suite::records::{ThreadScript, record_with_blob};

use crate::maker::{open, options};
use crate::server;

/// The hash of a blob says nothing about the blobs of another thread.
#[tokio::test]
async fn a_blob_belongs_to_its_thread_and_to_the_forks_of_it() {
    let journal = open(&options(server::shared())).await;
    let mut scripts = Vec::new();
    for tenant in ["mill", "yard"] {
        let mut script = ThreadScript::new();
        let by = ListScope {
            tenant: Some(tenant.to_owned()),
            principal: None,
        };
        script.start_by(&journal, "/w", &by).await;
        scripts.push(script);
    }
    let [mut mine, mut theirs] = <[ThreadScript; 2]>::try_from(scripts).unwrap();
    let blob = journal.put(mine.thread, b"secret".to_vec(), "a/b".to_owned());
    let blob = blob.await.unwrap();
    let found = journal.get(theirs.thread, blob.clone()).await;
    assert_eq!(found, Err(ReadError::NotFound));
    let records = theirs.clone().records(vec![record_with_blob(&blob)]);
    let named = journal.append(theirs.thread, theirs.head, &records, Class::Power);
    let missing = AppendError::NoBlob(blob.hash.clone());
    assert_eq!(named.await, Err(missing));
    // The other thread stores the same bytes for itself, and keeps them.
    let own = journal.put(theirs.thread, b"secret".to_vec(), "a/b".to_owned());
    assert_eq!(own.await.as_ref(), Ok(&blob));
    theirs.append(&journal, vec![record_with_blob(&blob)]).await;
    mine.append(&journal, vec![record_with_blob(&blob)]).await;
    let fork = mine.fork(&journal, mine.head).await;
    journal.delete(mine.thread).await.unwrap();
    let found = journal.get(fork.thread, blob.clone()).await;
    assert_eq!(found, Ok(b"secret".to_vec()));
    journal.delete(theirs.thread).await.unwrap();
    let found = journal.get(fork.thread, blob.clone()).await;
    assert_eq!(found, Ok(b"secret".to_vec()));
    journal.delete(fork.thread).await.unwrap();
    let found = journal.get(fork.thread, blob).await;
    assert_eq!(found, Err(ReadError::NotFound));
}
