use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Seq, ThreadId};

use super::{LocalJournal, Options};

#[tokio::test]
async fn nobody_is_told_a_head_that_is_in_doubt() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options {
        folder: folder.path().to_owned(),
    };
    let journal = LocalJournal::open(&options).expect("a journal");
    let thread = ThreadId::mint();
    assert_eq!(journal.head(thread).await, Ok(Seq::ZERO));
    journal.writer.doubt();
    let head = journal.head(thread).await;
    assert!(matches!(head, Err(ReadError::Unavailable(_))), "{head:?}");
}
