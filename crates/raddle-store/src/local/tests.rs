use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Seq, ThreadId};

use super::{LocalJournal, Options};

#[tokio::test]
async fn a_head_in_doubt_is_not_returned() {
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
